"""Proportionality: the scaled network by hand, verdicts in both directions, a tiny run."""

import pytest
import torch
from support.claims import judge_planted
from support.rules import build, images
from torch import nn

from fsbench.claims import _training, swr_figure1
from fsbench.claims.engine import ClaimJob
from fsbench.claims.swr_figure1 import CLAIM, GAIN, SETUPS


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
    source = _training.load_digits_source(0, 4)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    nn.init.zeros_(model[1].weight)
    with torch.no_grad():
        model[1].bias.copy_(torch.arange(10) % 7)
    assert set(swr_figure1.predict_test_labels(model, source).tolist()) == {6}
    assert model[1].weight.dtype == torch.float32


def plant(
    later: float = 93, fit: float = 100, best: float = 92, **theorem: list[list[float]]
) -> dict[str, list[dict[str, object]]]:
    """Two seeds; with the correction, one c ends at `later`, the others a point above the best.

    theorem: quantities of the two seeds of the networks that test Theorem 1.
    """
    gain = {"fit": fit, "best": best, "later without": [10.0] * 5}
    gain["later with"] = [93.0] * 4 + [later]
    kept = {"last": 91.0, "same with": [1.0] * 5, "after without": [80.0] * 5}
    mlp = [{**kept, **{q: values[seed] for q, values in theorem.items()}} for seed in (0, 1)]
    return {"mlp": mlp, "cnn": [kept] * 2, GAIN: [gain] * 2}


@pytest.mark.parametrize(("same", "verdict"), [(1.0, "reproduced"), (0.999, "not reproduced")])
def test_one_changed_prediction_is_too_many(same: float, verdict: str) -> None:
    runs = plant(**{"same with": [[1.0] * 5, [1.0, same, 1.0, 1.0, 1.0]]})
    figures = judge_planted(CLAIM, runs)["theorem 1"].figures
    assert [figure.verdict for figure in figures[:2]] == [verdict, "reproduced"]


@pytest.mark.parametrize(
    ("means", "spread", "verdict"),
    [
        ([90, 80, 80, 30, 10], 0, "reproduced"),
        ([90, 80, 82, 30, 10], 0, "direction only"),
        ([90, 80, 82, 30, 10], 3, "reproduced"),
        ([90, 80, 82, 30, 10], 1, "direction only"),
        ([91, 91, 91, 91, 91], 0, "not reproduced"),
    ],
)
def test_a_decline_without_the_correction(means: list[float], spread: float, verdict: str) -> None:
    """Two seeds; a rise within one standard error of the paired difference is allowed."""
    seeds = [[*means[:2], means[2] + d, *means[3:]] for d in (-spread, spread)]
    figures = judge_planted(CLAIM, plant(**{"after without": seeds}))["theorem 1"].figures
    assert figures[2].verdict == verdict


@pytest.mark.parametrize(("later", "verdict"), [(93.0, "reproduced"), (91.5, "not reproduced")])
def test_more_training_is_compared_with_the_best_before(later: float, verdict: str) -> None:
    figures = judge_planted(CLAIM, plant(later))["gain"].figures
    assert [figure.verdict for figure in figures] == [verdict, "not reproduced"]


@pytest.mark.parametrize(
    ("fit", "best", "holds"),
    [(100, 92, [True, True, True]), (98, 92, [True, False, True]), (100, 96, [True, True, False])],
)
def test_a_gain_needs_over_fitting_and_room(fit: float, best: float, holds: list[bool]) -> None:
    outcomes = judge_planted(CLAIM, plant(93, fit, best))
    assert [condition.holds for condition in outcomes["gain"].conditions] == holds
    assert [condition.ours for condition in outcomes["theorem 1"].conditions] == ["91 %"] * 2


def test_a_tiny_run_continues_from_the_scaled_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_training, "BATCH", 128)
    monkeypatch.setattr(swr_figure1, "SCALES", (0.5, 0.01))
    monkeypatch.setitem(SETUPS, "mlp", ("mlp", 1, 2, 1))
    run = swr_figure1.measure(ClaimJob("mlp", 0))
    assert 30 < run["fit"] < run["last"]
    assert 50 < run["last"] <= run["best"]
    assert (run["same with"], run["after with"]) == ([1.0] * 2, [run["last"]] * 2)
    assert run["after without"][1] < run["last"] - 20
    assert run["same without"][1] < 0.9
    half, hundredth = run["later with"]
    assert half > run["last"] - 20 > hundredth
