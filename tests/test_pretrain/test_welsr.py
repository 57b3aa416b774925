"""WELSR redraws a new random part of every kernel in every round."""

from pathlib import Path

import pytest
import torch
from support.events import (
    at_event,
    changed,
    finish_epoch,
    kernel_names,
    open_round,
    train_round,
)
from support.pretrain import lines

WIDE = "width=8"


def test_a_fifth_of_every_kernel_is_redrawn_and_nothing_else(tmp_path: Path) -> None:
    made, before, after = at_event("welsr", tmp_path, WIDE)
    assert changed(before, after) == kernel_names(made)
    for name in kernel_names(made):
        n, new = before[name].numel(), int((before[name] != after[name]).sum())
        assert abs(new - 0.2 * n) <= 4 * (n * 0.2 * 0.8) ** 0.5
    assert lines(tmp_path, "rewrites.jsonl")[0]["fraction_changed"] == pytest.approx(0.2, abs=0.01)


def test_redrawn_elements_follow_the_initial_distribution(tmp_path: Path) -> None:
    _, before, after = at_event("welsr", tmp_path, WIDE)
    name = "layer4.0.conv2.weight"
    new = after[name][before[name] != after[name]].double()
    assert float(new.std()) == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.03)
    assert abs(float(new.mean())) < 4 * float(new.std()) / len(new) ** 0.5


def test_an_exact_part_is_exact(tmp_path: Path) -> None:
    made, before, after = at_event("welsr", tmp_path, "welsr.exact=true", "welsr.fraction=0.3")
    for name in kernel_names(made):
        n = before[name].numel()
        assert int((before[name] != after[name]).sum()) == 3 * n // 10


def test_every_round_draws_another_mask(tmp_path: Path) -> None:
    made, before, after = at_event("welsr", tmp_path, WIDE, "plan.rounds=3")
    first = before["fc.weight"] != after["fc.weight"]
    finish_epoch(made)
    train_round(made)
    before, after = open_round(made)
    assert not torch.equal(first, before["fc.weight"] != after["fc.weight"])


def test_fraction_1_redraws_all_kernels(tmp_path: Path) -> None:
    made, before, after = at_event("welsr", tmp_path, "welsr.fraction=1")
    assert changed(before, after) == kernel_names(made)
    assert all(bool((before[name] != after[name]).all()) for name in kernel_names(made))
