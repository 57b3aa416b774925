"""Sizes of comparisons against the textbook formula, and by simulation against the test itself."""

from statistics import NormalDist

import numpy as np
import pytest

from fsbench.core import statistics
from fsbench.core.statistics import episodes_needed, standard_errors


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("power", [0.31, 0.8, 0.99])
def test_the_gap_is_found_with_the_power_by_either_tail(alpha: float, power: float) -> None:
    """The far tail matters where alpha and power are close."""
    normal = NormalDist()
    gap, z = standard_errors(alpha, power), normal.inv_cdf(1 - alpha / 2)
    assert normal.cdf(gap - z) + normal.cdf(-z - gap) == pytest.approx(power, abs=1e-9)


def test_figures_of_real_logs() -> None:
    """ChestX and EuroSAT at 5 shots, sd 5.4 and 4.3 points: about 920 and 580 episodes."""
    assert [episodes_needed(sd, 0.005) for sd in (0.054, 0.043)] == [916, 581]


def test_so_many_episodes_detect_the_gap_and_one_fewer_does_not_quite() -> None:
    for gap in (0.004, 0.02, 0.3):
        n = episodes_needed(0.1, gap)
        assert standard_errors() * 0.1 / np.sqrt(n) <= gap
        assert n == 2 or standard_errors() * 0.1 / np.sqrt(n - 1) > gap
    assert episodes_needed(0.0, 0.3) == 2


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_the_test_finds_the_gap_as_often_as_promised(power: float) -> None:
    rng, trials = np.random.default_rng(0), 3000
    n = episodes_needed(0.06, 0.01, power=power)
    gaps = rng.normal(0.01, 0.06, (trials, n))
    base = np.full(n, 0.5)
    detected_share = np.mean([statistics.paired([base + g], [base]).p < 0.05 for g in gaps])
    assert abs(detected_share - power) < 4 * np.sqrt(power * (1 - power) / trials)


def test_the_mean_over_cells_needs_fewer_episodes_of_each() -> None:
    """Cells of different spread, as a board averages them: simulated against the same test."""
    rng, trials, sds = np.random.default_rng(1), 3000, (0.03, 0.06, 0.12)
    n = episodes_needed(np.hypot(np.hypot(*sds[:2]), sds[2]) / 3, 0.01)
    base = [np.full(n, 0.5)] * 3
    hits = 0
    for _ in range(trials):
        cells = [rng.normal(0.51, sd, n) for sd in sds]
        hits += statistics.paired(cells, base).p < 0.05
    assert abs(hits / trials - 0.8) < 4 * np.sqrt(0.16 / trials)
