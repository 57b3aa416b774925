"""Sizes of comparisons against the textbook formula, and by simulation against the test itself."""

from statistics import NormalDist

import numpy as np
import pytest

from fsbench.core import statistics
from fsbench.core.errors import UsageError
from fsbench.core.statistics import Goal, detectable, episodes_needed, standard_errors


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("power", [0.31, 0.8, 0.99])
def test_the_gap_is_found_with_the_power_by_either_tail(alpha: float, power: float) -> None:
    """The far tail matters where alpha and power are close."""
    normal = NormalDist()
    gap, z = (
        standard_errors(Goal(gap=0.01, alpha=alpha, power=power)),
        normal.inv_cdf(1 - alpha / 2),
    )
    assert normal.cdf(gap - z) + normal.cdf(-z - gap) == pytest.approx(power, abs=1e-9)


def test_figures_of_real_logs() -> None:
    """ChestX and EuroSAT at 5 shots, sd 5.4 and 4.3 points: about 920 and 580 episodes."""
    goal = Goal(gap=0.005)
    assert [episodes_needed(sd, goal) for sd in (0.054, 0.043)] == [916, 581]
    assert [round(100 * detectable(sd, 600, goal), 2) for sd in (0.054, 0.043)] == [0.62, 0.49]


def test_so_many_episodes_detect_the_gap_and_one_fewer_does_not_quite() -> None:
    for gap in (0.004, 0.02, 0.3):
        goal = Goal(gap=gap)
        n = episodes_needed(0.1, goal)
        assert detectable(0.1, n, goal) <= gap
        assert n == 2 or detectable(0.1, n - 1, goal) > gap
    assert episodes_needed(0.0, goal) == 2


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_the_test_finds_the_gap_as_often_as_promised(power: float) -> None:
    rng, goal, trials = np.random.default_rng(0), Goal(gap=0.01, power=power), 3000
    n = episodes_needed(0.06, goal)
    gaps = rng.normal(goal.gap, 0.06, (trials, n))
    base = np.full(n, 0.5)
    detected_share = np.mean([statistics.paired([base + g], [base]).p < goal.alpha for g in gaps])
    assert abs(detected_share - power) < 4 * np.sqrt(power * (1 - power) / trials)


def test_the_mean_over_cells_needs_fewer_episodes_of_each() -> None:
    """Cells of different spread, as a board averages them: simulated against the same test."""
    rng, goal, trials, sds = np.random.default_rng(1), Goal(gap=0.01), 3000, (0.03, 0.06, 0.12)
    n = episodes_needed(np.hypot(np.hypot(*sds[:2]), sds[2]) / 3, goal)
    base = [np.full(n, 0.5)] * 3
    hits = 0
    for _ in range(trials):
        cells = [rng.normal(0.5 + goal.gap, sd, n) for sd in sds]
        hits += statistics.paired(cells, base).p < goal.alpha
    assert abs(hits / trials - 0.8) < 4 * np.sqrt(0.16 / trials)


@pytest.mark.parametrize(
    "wrong", [{"gap": 0.0}, {"gap": -1.0}, {"alpha": 0.0}, {"alpha": 0.9}, {"power": 1.0}]
)
def test_what_no_test_can_have_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Goal(**{"gap": 0.01, **wrong}).require_possible()
