"""Full reset starts every stage where the first one did."""

from __future__ import annotations

from pathlib import Path

import torch
from support.stages import at_new_data


def test_parameters_start_over_and_statistics_do_not(tmp_path: Path) -> None:
    event = at_new_data("full_reset", tmp_path)
    parameters = {n for n, _ in event.made.ctx.model.named_parameters()}
    assert event.changed == parameters
    assert all(torch.equal(event.after[n], event.start[n]) for n in parameters)


def test_statistics_start_over_when_asked(tmp_path: Path) -> None:
    event = at_new_data("full_reset", tmp_path, "full_reset.running_stats=true")
    assert all(torch.equal(event.after[n], event.start[n]) for n in event.start)


def test_the_optimizer_starts_over_only_when_asked(tmp_path: Path) -> None:
    kept = at_new_data("full_reset", tmp_path / "kept").made.ctx.optimizer_state()
    assert "momentum_buffer" in kept["fc.weight"]
    dropped = at_new_data("full_reset", tmp_path / "dropped", "opt_reset=touched")
    assert dropped.made.ctx.optimizer_state() == {}
