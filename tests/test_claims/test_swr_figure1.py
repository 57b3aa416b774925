"""Proportionality: the scaled network by hand, verdicts in both directions, a tiny run."""

from collections.abc import Mapping

import pytest
import torch
from support.rules import build, images
from torch import nn

from fsbench.claims import ClaimSettings, ClaimVerdict, _runs, swr_figure1
from fsbench.claims.swr_figure1 import (
    SCALES,
    SETUPS,
    ScalingEffect,
    ScalingResult,
    ScalingSetup,
)


def test_the_correction_scales_the_function() -> None:
    model, roles = build("cnn")
    x = images()
    other = swr_figure1.rescale_copy(model, roles.weighted, 0.5, corrected=True)
    n = len(roles.weighted)
    torch.testing.assert_close(other(x), 0.5**n * model(x))
    plain = swr_figure1.rescale_copy(model, roles.weighted, 0.5, corrected=False)
    for (name, before), after in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(after, before * (0.5 if name.endswith("weight") else 1))


def test_predictions_are_the_largest_logits() -> None:
    source = _runs.load_digits_source(0, 4)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    nn.init.zeros_(model[1].weight)
    with torch.no_grad():
        model[1].bias.copy_(torch.arange(10) % 7)
    assert set(swr_figure1.predict_test_labels(model, source).tolist()) == {6}
    assert model[1].weight.dtype == torch.float32


def make_result(
    corrected: Mapping[float, ScalingEffect] | ScalingEffect,
    plain: Mapping[float, ScalingEffect] | ScalingEffect,
) -> ScalingResult:
    sides = [s if isinstance(s, Mapping) else dict.fromkeys(SCALES, s) for s in (corrected, plain)]
    return ScalingResult(90, 92, 100, dict(sides[0]), dict(sides[1]))


@pytest.mark.parametrize(("same", "verdict"), [(1.0, "reproduced"), (0.999, "not reproduced")])
def test_one_changed_prediction_is_too_many(same: float, verdict: str) -> None:
    good, other = ScalingEffect(1.0, 90, 93), ScalingEffect(same, 90, 93)
    runs = [make_result(good, good), make_result({**dict.fromkeys(SCALES, good), 0.5: other}, good)]
    assert swr_figure1.judge_kept_predictions("mlp", runs).verdict == verdict


@pytest.mark.parametrize(
    ("means", "spread", "verdict"),
    [
        ([90, 80, 80, 30, 10], 0, "reproduced"),
        ([90, 80, 82, 30, 10], 0, "direction only"),
        ([90, 80, 82, 30, 10], 3, "reproduced"),
        ([90, 80, 82, 30, 10], 1, "direction only"),
        ([90, 90, 90, 90, 90], 0, "not reproduced"),
    ],
)
def test_a_decline_without_the_correction(means: list[float], spread: float, verdict: str) -> None:
    """Two seeds; a rise within one standard error of the paired difference is allowed."""
    accuracies = [[m, m] for m in means]
    accuracies[2] = [means[2] - spread, means[2] + spread]
    assert swr_figure1.judge_decline([90, 90], accuracies) == verdict


@pytest.mark.parametrize(
    ("at_least", "verdict"),
    [(93.0, "reproduced"), (91.5, "not reproduced")],
)
def test_more_training_is_compared_with_the_best_before(at_least: float, verdict: str) -> None:
    good, last = ScalingEffect(1.0, 90, 93), ScalingEffect(1.0, 90, at_least)
    runs = [make_result({**dict.fromkeys(SCALES, good), 0.1: last}, ScalingEffect(1.0, 90, 10))] * 2
    assert swr_figure1.judge_later(True, runs).verdict == verdict
    assert swr_figure1.judge_later(False, runs).verdict == "not reproduced"


def test_the_worst_verdict() -> None:
    all_three: list[ClaimVerdict] = ["reproduced", "not reproduced", "direction only"]
    assert swr_figure1.select_worst_verdict(all_three) == "not reproduced"
    assert swr_figure1.select_worst_verdict(all_three[::2]) == "direction only"


def test_a_tiny_run_continues_from_the_scaled_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swr_figure1, "BATCH", 128)
    monkeypatch.setattr(swr_figure1, "SCALES", (0.5, 0.01))
    monkeypatch.setitem(SETUPS, "mlp", ScalingSetup("mlp", 1, 2, 1))
    one = swr_figure1.scale_trained_network(("mlp", 0), ClaimSettings())
    assert 30 < one.train < one.last
    assert 50 < one.last <= one.best
    assert all(scaled.same == 1 and scaled.after == one.last for scaled in one.corrected.values())
    assert one.plain[0.01].after < one.last - 20
    assert one.plain[0.01].same < 0.9
    assert one.corrected[0.5].later is not None
    assert one.corrected[0.01].later is not None
    assert one.corrected[0.5].later > one.last - 20 > one.corrected[0.01].later
    panel = swr_figure1._network_panel("mlp", [one, one])
    assert [curve.x for curve in panel.curves] == [(0.5, 0.01)] * 5
