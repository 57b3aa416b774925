"""Variance over pretraining seeds and over episodes: by hand, and recovered where it is known."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from fsbench.core import statistics
from leaderboard.ranking.gaps import compute_joint_interval, compute_student_interval
from leaderboard.ranking.seeds import average_columns, compute_seed_interval, estimate_sides


def table(
    seeds: int, episodes: int, sds: tuple[float, float, float], number: int
) -> NDArray[np.float64]:
    draw = np.random.default_rng(number)
    a, b, r = sds
    rows, columns = draw.normal(0, a, (seeds, 1)), draw.normal(0, b, (1, episodes))
    return np.asarray(0.5 + rows + columns + draw.normal(0, r, (seeds, episodes)))


def test_the_component_of_the_seeds_by_hand() -> None:
    """Rows 1 2 6 and 3 6 12, in hundredths: means 3 and 7, grand mean 5. Left over: ±(1, 0, -1)
    in both rows, MS_r = 4 / 2; seeds 8 - 2/3. Negative estimates are zero."""
    rows = [[row] for row in np.array([[1, 2, 6], [3, 6, 12]]) / 100]
    assert estimate_sides([rows], [["a"]])[0].component == pytest.approx((8 - 2 / 3) * 1e-4)
    below = [[np.array([0.0, 1.0])], [np.array([1.0, 0.0])]]
    assert estimate_sides([below], [["a"]])[0].component == 0.0


def test_over_columns_the_seed_variance_is_that_of_their_mean() -> None:
    """The same seed effect in two columns stays, its noise halves."""
    draw = np.random.default_rng(0)
    effects = draw.normal(0, 0.03, (3000, 1))
    parts = [effects + draw.normal(0, 0.1, (3000, 20)) for _ in range(2)]
    sides = [list(columns) for columns in zip(*parts, strict=True)]
    assert estimate_sides([sides], [["a", "b"]])[0].component == pytest.approx(0.03**2, rel=0.1)


def test_the_interval_is_that_of_the_textbook() -> None:
    """t of S - 1 times MS_s and t of E - 1 times MS_e - MS_r, squared and added, by S E."""
    y = table(3, 40, (0.05, 0.05, 0.1), 1)
    s, e = y.shape
    left = y - y.mean(1, keepdims=True) - y.mean(0) + y.mean()
    ms_s, ms_e = e * y.mean(1).var(ddof=1), s * y.mean(0).var(ddof=1)
    ms_r = (left**2).sum() / ((s - 1) * (e - 1))
    assert ms_s > ms_r
    assert ms_e > ms_r

    def half(p: float) -> float:
        of_seeds, of_episodes = scipy_stats.t.isf(p / 2, [s - 1, e - 1]) ** 2
        return math.sqrt((of_seeds * ms_s + of_episodes * (ms_e - ms_r)) / (s * e))

    side = [[row] for row in y]
    center = [y.mean(axis=0)]
    se = statistics.paired(center, [np.zeros(e)]).se
    interval = compute_seed_interval(average_columns(center), [side], se, [])
    assert interval.ci95 == pytest.approx(half(0.05))
    assert half(interval.p) == pytest.approx(y.mean()), "the interval of level 1 - p ends at zero"


@pytest.mark.parametrize(("seeds", "sides"), [(2, 1), (3, 1), (3, 2)])
def test_no_gap_is_found_at_most_at_the_stated_rate(seeds: int, sides: int) -> None:
    outside = []
    for number in range(300):
        parts = [table(seeds, 50, (0.02, 0.05, 0.1), sides * number + i) for i in range(sides)]
        drawn = [[[row - 0.5] for row in part] for part in parts]
        centers = [list(np.mean(side, axis=0)) for side in drawn]
        ours, theirs = centers[0], centers[1] if sides == 2 else [np.zeros(50)]
        paired = statistics.paired(ours, theirs)
        outside.append(compute_seed_interval(paired.gap, drawn, paired.se, []).p < 0.05)
    assert np.mean(outside) < 0.085


def test_what_cannot_be_known_is_not_invented() -> None:
    side = [[np.array([0.1])], [np.array([0.3])]]
    assert all(math.isnan(value) for value in compute_seed_interval(0.2, [side], math.nan, []))
    equal = [[np.zeros(3)], [np.zeros(3)]]
    assert compute_seed_interval(0.0, [equal], 0.0, []) == (0.0, 1.0)
    assert compute_seed_interval(0.1, [equal], 0.0, []) == (0.0, 0.0)


@pytest.mark.parametrize("freedom", [1, 2, 7.5, 599])
@pytest.mark.parametrize("value", [0.0, 0.3, -2.0, 40.0])
def test_of_one_estimate_the_joint_interval_is_students(value: float, freedom: float) -> None:
    half, p = scipy_stats.t.isf(0.025, freedom) / 2, 2 * scipy_stats.t.sf(2 * abs(value), freedom)
    joint = compute_joint_interval(value, [(0.25, freedom), (0.0, 1)])
    assert joint == pytest.approx((half, p), rel=1e-6)
    assert compute_student_interval(value, 0.5, freedom) == joint


def test_joint_intervals_of_no_and_of_unknown_variance() -> None:
    assert compute_joint_interval(0.0, [(0.0, 1)]) == (0.0, 1.0)
    assert compute_joint_interval(0.1, [(0.0, 1)]) == (0.0, 0.0)
    unknown = compute_joint_interval(0.1, [(1.0, 1), (math.nan, 5)])
    assert all(math.isnan(value) for value in unknown)
    assert compute_joint_interval(1e9, [(1e-9, 599)]).p < 1e-290


@pytest.mark.parametrize("value", [0.6, 6.0, 6e3, 6e9])
@pytest.mark.parametrize("freedoms", [(20, 599), (4, 599), (200, 5999), (599, 599)])
def test_a_value_of_very_many_errors_has_a_p(value: float, freedoms: tuple[int, int]) -> None:
    """The bisection never ended where the smallest p of the parts was below 1e-300."""
    joint = compute_joint_interval(value, [(1e-5, freedoms[0]), (1e-5, freedoms[1])])
    of_first, of_both = (
        compute_student_interval(value, se, freedoms[0]) for se in (1e-5**0.5, 2e-5**0.5)
    )
    assert of_first.ci95 < joint.ci95 <= of_both.ci95
    assert max(of_first.p, 2e-300) * 0.99 <= joint.p <= max(of_both.p, 2e-300) * 1.01
