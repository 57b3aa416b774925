"""Full reset starts every stage from the initial parameters."""

from pathlib import Path

import torch
from support.stages import at_new_data


def test_parameters_are_reset_and_running_statistics_are_not(tmp_path: Path) -> None:
    event = at_new_data("full_reset", tmp_path)
    parameters = {n for n, _ in event.made.ctx.model.named_parameters()}
    assert event.changed == parameters
    assert all(torch.equal(event.after[n], event.start[n]) for n in parameters)


def test_running_statistics_are_reset_with_the_option(tmp_path: Path) -> None:
    event = at_new_data("full_reset", tmp_path, "full_reset.running_stats=true")
    assert all(torch.equal(event.after[n], event.start[n]) for n in event.start)


def test_the_optimizer_is_reset_only_with_the_option(tmp_path: Path) -> None:
    unreset = at_new_data("full_reset", tmp_path / "kept").made.ctx.optimizer_state()
    assert "momentum_buffer" in unreset["fc.weight"]
    dropped = at_new_data("full_reset", tmp_path / "dropped", "opt_reset=touched")
    assert dropped.made.ctx.optimizer_state() == {}
