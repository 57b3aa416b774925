"""SEAL's ablations: freeze, reinit, reverse."""

from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, lines, tiny, trainer
from torch import nn

from fsbench.core.errors import UsageError
from pretrain.training.loop import Trainer

EARLY = ("conv1.", "bn1.", "layer1.", "layer2.")


def at_round_one(method: str, out: Path, *assignments: str) -> Trainer:
    made = trainer(tiny(method, *assignments), out)
    epochs(made, 4)
    made._open_epoch(2)
    return made


def changed_by_an_epoch(made: Trainer) -> set[str]:
    before = {n: t.clone() for n, t in made.ctx.model.state_dict().items()}
    for _ in range(2):
        made._step(2)
    return {n for n, t in made.ctx.model.state_dict().items() if not torch.equal(t, before[n])}


@pytest.mark.parametrize("freeze_norm", [False, True])
def test_freeze_holds_the_late_layers_while_the_early_ones_ascend(
    tmp_path: Path, freeze_norm: bool
) -> None:
    made = at_round_one("seal_freeze", tmp_path, f"seal_freeze.freeze_norm={freeze_norm}")
    changed = changed_by_an_epoch(made)
    parameters = set(made.ctx.parameters)
    assert changed & parameters == {n for n in parameters if n.startswith(EARLY)}
    statistics = {n for n in changed if "running" in n and not n.startswith(EARLY)}
    assert bool(statistics) is not freeze_norm
    made._close_epoch()
    made._open_epoch(2)
    changed = changed_by_an_epoch(made)
    assert parameters <= changed
    assert "layer4.0.bn1.running_mean" in changed
    assert all(m.training for m in made.ctx.model.modules() if isinstance(m, nn.BatchNorm2d))


def test_reinit_forgets_like_llf_and_then_ascends(tmp_path: Path) -> None:
    made = at_round_one("seal_reinit", tmp_path / "a")
    llf = at_round_one("llf", tmp_path / "b")
    [record], [theirs] = (lines(tmp_path / run, "rewrites.jsonl") for run in "ab")
    assert record["tensors"] == theirs["tensors"]
    assert len(made.ctx.optimizer.param_groups) == 2
    assert len(llf.ctx.optimizer.param_groups) == 1


def test_reinit_needs_rounds_even_without_ascent() -> None:
    with pytest.raises(UsageError, match="seal_reinit would never act"):
        tiny("seal_reinit", "plan.rounds=1", "seal_reinit.ascent_share=0")


@pytest.mark.parametrize("head_descends", [False, True])
def test_reverse_ascends_late(tmp_path: Path, head_descends: bool) -> None:
    made = at_round_one("seal_reverse", tmp_path, f"seal_reverse.head_descends={head_descends}")
    names = {id(p): n for n, p in made.ctx.model.named_parameters()}
    ascending = {names[id(p)] for p in made.ctx.optimizer.param_groups[1]["params"]}
    late = {n for n in names.values() if not n.startswith(EARLY)}
    head = {"fc.weight", "fc.bias"}
    assert ascending == (late - head if head_descends else late)
    assert made.ctx.optimizer.param_groups[1]["lr_scale"] == 0.1
