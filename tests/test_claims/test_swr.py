"""Claims of soft weight rescaling: measures by hand, and tiny runs."""

import pytest
import torch
from support.rules import build, images
from torch import nn

from fsbench.claims import _training, swr_bounds, swr_decay, swr_figure1, swr_scenarios
from fsbench.claims._training import TrainedRun
from fsbench.claims.engine import ClaimJob, ClaimSettings
from fsbench.claims.swr_figure1 import SETUPS
from fsbench.claims.swr_scenarios import LIMITED


def test_norms_and_ratios_by_hand() -> None:
    measured = swr_bounds.compare_norms([[3, 4, 5], [3, 8, 5]], [1, 1, 1], 1.0)
    assert measured["norm"] == pytest.approx([50**0.5, 98**0.5])
    assert measured["imbalance"] == pytest.approx((4 / 3 + 5 / 8 + 0) / 3 / 2)
    grown = swr_bounds.compare_norms([[4, 3], [4, 3], [8, 6], [8, 6], [12, 9]], [1, 1], 1.0)
    assert grown["late growth"] == pytest.approx(15 - 10)


def test_the_bound_by_hand() -> None:
    """Adam at 1e-3 moves 4 elements by at most 2 * 3.1623e-3 a step; over lam = 1e-2."""
    measured = swr_bounds.compare_norms([[3, 1], [3, 2], [3, 1.5]], [4, 1], 1e-2)
    assert measured["least share"] == pytest.approx(3 / (3 + 2 * 0.31622776601))
    assert measured["largest share"] == pytest.approx(2 / (1 + 0.31622776601))


def test_growth_by_hand() -> None:
    """Start 2, 6 when the rate first drops (half of 8 epochs), 3 at the end: a quarter is kept."""
    growth = swr_decay.measure_growth([2, 3, 4, 5, 6, 5, 4, 3, 3])
    assert growth == {"early growth": 200, "kept": 0.25}


def test_the_correction_scales_the_function() -> None:
    model, roles = build("cnn")
    x = images()
    other = swr_figure1.rescale_copy(model, roles.weighted, 0.5, corrected=True)
    torch.testing.assert_close(other(x), 0.5 ** len(roles.weighted) * model(x))
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


def test_coefficients_are_on_the_papers_grids() -> None:
    """Appendix D.2; those that were chosen are among them."""
    assert swr_scenarios.GRIDS["SWR"] == (1, 0.1, 0.01, 0.001, 0.0001)
    assert swr_scenarios.GRIDS["L2 Init"] == (0.1, 0.01, 0.001, 0.0001, 0.00001)
    for name, grid in swr_scenarios.GRIDS.items():
        assert set(swr_scenarios.METHODS[name][1]) <= set(grid)


def test_the_search_scores_the_ends_of_later_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {0.2: [90.0, 10.0, 20.0], 0.4: [30.0, 50.0]}
    monkeypatch.setattr(swr_scenarios, "GRIDS", {"S&P": tuple(ends)})

    def train(job: ClaimJob, scenario: str, name: str, lam: float) -> TrainedRun:
        assert (job.seed, scenario, name) == (0, LIMITED, "S&P")
        return TrainedRun([], ends[lam])

    monkeypatch.setattr(swr_scenarios, "train_method", train)
    coefficients = swr_scenarios.search_coefficients(LIMITED, ClaimSettings())
    assert coefficients == {"S&P": {0.2: 15, 0.4: 50}}


def test_measures_of_stages_by_hand() -> None:
    """Three stages of two epochs; switches 60 -> 50 and 80 -> 85."""
    run = TrainedRun([40, 60, 50, 80, 85, 91], [60, 80, 91], [10, 20, 30, 40, 50, 60])
    assert swr_scenarios.measure_stages(run, 2) == {
        "final": 91,
        "later": 85.5,
        "switch": -2.5,
        "drop": 2.5,
        "first fit": 20,
        "last fit": 60,
        "test accuracy (%) by stage": [60, 80, 91],
        "test accuracy (%) after the first stage": [50, 80, 85, 91],
    }
