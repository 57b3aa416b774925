"""LLF redraws the later kernels and the head's weight, and nothing else."""

from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, lines, tiny, trainer
from torch import Tensor

LATE = {
    f"{stage}.0.{part}.weight"
    for stage in ("layer3", "layer4")
    for part in ("conv1", "conv2", "downsample.0")
} | {"fc.weight"}


def across_the_event(out: Path, *assignments: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """All tensors before and after the start of round 1."""
    made = trainer(tiny("llf", *assignments), out)
    epochs(made, made.recipe.plan.epochs)
    before = {n: t.clone() for n, t in made.ctx.model.state_dict().items()}
    made._open_epoch(2)
    return before, dict(made.ctx.model.state_dict())


def test_later_kernels_and_head_weight_change_and_nothing_else(tmp_path: Path) -> None:
    before, after = across_the_event(tmp_path)
    assert {n for n in before if not torch.equal(before[n], after[n])} == LATE
    record = lines(tmp_path, "rewrites.jsonl")
    assert len(record) == 1
    assert set(record[0]["tensors"]) == LATE
    assert (record[0]["round"], record[0]["step"], record[0]["fraction_changed"]) == (1, 8, 1.0)


def test_redrawn_kernels_have_their_initial_standard_deviation(tmp_path: Path) -> None:
    _, after = across_the_event(tmp_path, "width=8")
    for name, fan_in in (("layer4.0.conv1.weight", 32 * 9), ("layer3.0.conv2.weight", 32 * 9)):
        assert float(after[name].std()) == pytest.approx((2 / fan_in) ** 0.5, rel=0.03)


def test_the_first_layer_as_threshold_redraws_every_kernel(tmp_path: Path) -> None:
    before, after = across_the_event(tmp_path, "llf.threshold=conv1")
    kernels = {n for n, t in before.items() if t.ndim > 1}
    assert {n for n in before if not torch.equal(before[n], after[n])} == kernels


def test_threshold_end_redraws_nothing(tmp_path: Path) -> None:
    before, after = across_the_event(tmp_path, "llf.threshold=end")
    assert all(torch.equal(before[n], after[n]) for n in before)
    assert lines(tmp_path, "rewrites.jsonl") == []


def test_hidden_linear_layers_are_redrawn_and_biases_are_not(tmp_path: Path) -> None:
    before, after = across_the_event(tmp_path, "architecture=study_mlp")
    late = {"layer2.0.weight", "fc.weight"}
    assert {n for n in before if not torch.equal(before[n], after[n])} == late


@pytest.mark.parametrize(("redraw", "spread"), [("init", 2.0), ("kaiming_uniform_sqrt5", 1 / 3)])
def test_the_redraw_distribution_is_a_setting(tmp_path: Path, redraw: str, spread: float) -> None:
    _, after = across_the_event(tmp_path, "width=8", f"redraw={redraw}")
    for name, fan_in in (("layer4.0.conv1.weight", 32 * 9), ("fc.weight", 64)):
        assert float(after[name].std()) == pytest.approx((spread / fan_in) ** 0.5, rel=0.15)
