"""NIO in runs of the loop: reports, refusals, scaled draws, its place before other methods."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, lines, source, tiny, trainer

from fsbench.core.errors import UsageError
from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import train_recipe


def test_a_run_logs_and_stores_cosine_and_norm(tmp_path: Path) -> None:
    made = trainer(tiny("nio"), tmp_path)
    (record,) = lines(tmp_path, "rewrites.jsonl")
    memory = made.ctx.memories["nio"]
    assert record["note"].startswith(f"GradCosine {memory['before'][0]:.4f} -> ")
    assert set(record["tensors"]) == set(memory["factors"])
    assert "layer1.0.bn1.weight" in record["tensors"]
    assert "bn1.bias" not in record["tensors"]
    assert record["step"] == 0


def test_an_unreachable_cap_and_two_inits_are_refused(tmp_path: Path) -> None:
    methods = [{"name": "nio"}, {"name": "gradinit"}]
    with pytest.raises(UsageError, match="both scale the initial network"):
        Recipe.model_validate({**tiny("nio").model_dump(), "methods": methods})
    with pytest.raises(UsageError, match="into 8 parts"):
        tiny("nio", "nio.batch_size=4", "nio.parts=8")


@pytest.mark.parametrize("scaled", [True, False])
def test_redraws_follow_the_scaled_distribution_with_the_option(
    tmp_path: Path, scaled: bool
) -> None:
    draws = {}
    for run, field in (("plain", "nio.iterations=0"), ("scaled", f"nio.scale_redraws={scaled}")):
        made = trainer(tiny("nio", field), tmp_path / run)
        made.ctx.acting = "nio"
        draws[run] = made.ctx.fresh(["fc.weight"])["fc.weight"]
    m = made.ctx.memories["nio"]["factors"]["fc.weight"] if scaled else 1.0
    torch.testing.assert_close(draws["scaled"], draws["plain"] * m)
    assert (m != 1.0) is scaled


def test_it_comes_before_a_reparametrization(tmp_path: Path) -> None:
    methods = [{"name": "weight_norm"}, {"name": "nio", "iterations": 5}]
    both = Recipe.model_validate({**tiny("nio").model_dump(), "methods": methods})
    made = trainer(both, tmp_path)
    epochs(made, 1)
    assert "fc.weight" in made.ctx.memories["nio"]["factors"]
    train_recipe(both, source(), tmp_path / "run")
