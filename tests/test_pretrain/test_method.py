"""What methods have in common: a plain first round, plans that suit them, exact resuming."""

from pathlib import Path

import pytest
import torch
from support.events import changed, finish_epoch, open_round, tensors, train_round
from support.pretrain import equal, killed_at, lines, source, tiny, trainer, weights

from fsbench.core.errors import UsageError
from pretrain.training.loop import train_recipe

AT_ROUNDS = ("dsd", "fc", "imp", "kels", "llf", "lw", "rescale", "seal", "wels", "welsr")


@pytest.mark.parametrize("name", AT_ROUNDS)
def test_the_first_round_is_plain_training(name: str, tmp_path: Path) -> None:
    made, plain = trainer(tiny(name), tmp_path / name), trainer(tiny("normal"), tmp_path / "normal")
    before, after = open_round(made)
    assert changed(before, after) == set()
    finish_epoch(made)
    train_round(made)
    train_round(plain)
    assert equal(tensors(made), tensors(plain))
    assert lines(tmp_path / name, "rewrites.jsonl") == []


@pytest.mark.parametrize("name", AT_ROUNDS)
def test_a_plan_of_one_round_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} would never act") as caught:
        tiny(name, "plan.rounds=1")
    assert "plan.rounds=2" in caught.value.fix


ALGORITHM_1 = ("lw.generations=false", "plan.rounds=4", "plan.epochs=1")
RESUMED = {
    "sparse phase": (("dsd", "dsd.sparse_epochs=2", "redraw=kaiming_uniform_sqrt5"), range(10, 14)),
    "early origin": (("imp", "imp.rewind_epoch=2"), (3, 5, 11)),
    "dropout": (("lw", "dropout=0.5"), (7,)),
    "new data": (("shrink_perturb", "plan.rounds=1"), (9,)),
    "per channel": (("lw", *ALGORITHM_1, "lw.statistics=per_channel"), (2, 3, 4, 7)),
    "frozen blocks": (("lw", *ALGORITHM_1, "lw.freeze_kept=true"), (3, 7)),
    "frozen norms": (("seal_freeze", "seal_freeze.freeze_norm=true"), (9,)),
    "adam": (("seal", "optimizer=adam", "lr=0.01"), (11,)),
}
"""Recipes with a state of their own, and the steps before which they are killed."""


@pytest.mark.parametrize("case", RESUMED)
def test_a_killed_run_resumes_to_the_same_bits_and_logs(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields, steps = RESUMED[case]
    recipe, whole, state = tiny(*fields), tmp_path / "whole", torch.get_rng_state()
    train_recipe(recipe, source(), whole)
    for step in steps:
        parts = tmp_path / f"parts-{step}"
        killed_at(step, recipe, parts, monkeypatch)
        train_recipe(recipe, source(), parts)
        assert equal(weights(parts), weights(whole))
        for log in ("log.jsonl", "rewrites.jsonl"):
            assert lines(parts, log) == lines(whole, log)
    assert torch.equal(state, torch.get_rng_state())
