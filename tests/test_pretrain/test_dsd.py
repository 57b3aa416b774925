"""DSD redraws the smallest weights, or trains sparse and continues from zero."""

from pathlib import Path
from typing import Literal

import pytest
import torch
from support.events import (
    at_event,
    changed,
    finish_epoch,
    kernel_names,
    open_round,
    tensors,
    train_round,
)
from support.pretrain import lines, tiny

from fsbench.core.errors import UsageError

SPARSE = ("dsd.fill=zero", "dsd.sparse_epochs=2", "weight_decay=0.01")


@pytest.mark.parametrize("scope", ["layer", "global"])
def test_the_smallest_weights_are_redrawn_and_the_rest_is_unchanged(
    tmp_path: Path, scope: Literal["layer", "global"]
) -> None:
    made, before, after = at_event("dsd", tmp_path, "width=8", f"dsd.scope={scope}")
    names = sorted(kernel_names(made))
    assert changed(before, after) <= set(names)
    groups = [names] if scope == "global" else [[name] for name in names]
    for group in groups:
        old = torch.cat([before[name].flatten() for name in group])
        new = torch.cat([after[name].flatten() for name in group])
        taken = old != new
        assert int(taken.sum()) == len(old) // 5
        assert float(old[taken].abs().max()) <= float(old[~taken].abs().min())


def test_zero_fill_prunes(tmp_path: Path) -> None:
    made, before, after = at_event("dsd", tmp_path, "dsd.fill=zero", "dsd.fraction=0.5")
    for name in kernel_names(made):
        taken = before[name] != after[name]
        assert int(taken.sum()) == taken.numel() // 2
        assert bool((after[name][taken] == 0).all())


def zeros(made_tensors: dict[str, torch.Tensor], names: set[str]) -> dict[str, torch.Tensor]:
    return {name: made_tensors[name] == 0 for name in names}


def test_a_sparse_phase_fixes_zeros_and_then_trains_them(tmp_path: Path) -> None:
    made, _, after = at_event("dsd", tmp_path, *SPARSE)
    names = kernel_names(made)
    pruned = zeros(after, names)
    assert sum(int(mask.sum()) for mask in pruned.values()) > 0
    finish_epoch(made)
    made._epoch(lambda images: None)
    zero_masks = zeros(tensors(made), names)
    assert all(torch.equal(zero_masks[name], pruned[name]) for name in names)
    moved = tensors(made)
    assert all(not torch.equal(moved[n], after[n]) for n in names)
    for name in names:
        buffer = made.ctx.optimizer.state[made.ctx.parameters[name]]["momentum_buffer"]
        assert bool((buffer[pruned[name]] == 0).all())
    before, after = open_round(made)
    assert changed(before, after) == set()
    finish_epoch(made)
    free = zeros(tensors(made), names)
    lifted = sum(int((pruned[name] & ~free[name]).sum()) for name in names)
    # units that died leave their weights without a gradient
    assert lifted > sum(int(mask.sum()) for mask in pruned.values()) / 4


def test_carried_momentum_does_not_lift_pruned_weights(tmp_path: Path) -> None:
    made, _, after = at_event("dsd", tmp_path, *SPARSE, "opt_reset=none")
    assert made.ctx.optimizer.state
    finish_epoch(made)
    now = tensors(made)
    assert all(torch.equal(now[n] == 0, after[n] == 0) for n in kernel_names(made))


def test_a_sparse_phase_may_end_in_fresh_draws(tmp_path: Path) -> None:
    made, _, after = at_event("dsd", tmp_path, "dsd.sparse_epochs=1")
    pruned = zeros(after, kernel_names(made))
    finish_epoch(made)
    before, after = open_round(made)
    for name, mask in pruned.items():
        assert torch.equal(before[name] != after[name], mask)
        assert bool((after[name][mask] != 0).all())


def test_the_original_method_acts_in_one_round(tmp_path: Path) -> None:
    made, *_ = at_event("dsd", tmp_path, *SPARSE, "dsd.events=1", "plan.rounds=3")
    finish_epoch(made)
    train_round(made)
    before, after = open_round(made)
    assert changed(before, after) == set()
    assert {record["round"] for record in lines(tmp_path, "rewrites.jsonl")} == {1}


def test_a_sparse_phase_as_long_as_the_round_is_refused() -> None:
    with pytest.raises(UsageError, match="leaves no dense epoch"):
        tiny("dsd", "dsd.sparse_epochs=4")
