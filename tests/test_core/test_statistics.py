"""Statistics against hand numbers and against scipy as the independent reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from fsbench.core.errors import UsageError
from fsbench.core.statistics import (
    balanced_score,
    holm,
    measure_columns,
    measure_rows,
    overall_sd,
    paired,
    score,
    score_rows,
)

accuracies = st.lists(st.integers(0, 75).map(lambda k: k / 75), min_size=2, max_size=60)


@given(accuracies.filter(lambda values: set(values) not in ({0.0}, {1.0})))
def test_a_score_is_the_mean_and_1_96_standard_errors(values: list[float]) -> None:
    """Equal outcomes between the bounds have no spread: a fifth is right, as of one class."""
    ci95 = 1.96 * float(reference.sem(values, ddof=1))
    expected = (pytest.approx(np.mean(values)), pytest.approx(ci95, abs=1e-12), len(values))
    assert score(values) == expected


@pytest.mark.parametrize("n", [2, 40, 600])
@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_outcomes_that_all_agree_have_the_bound_of_wilson(outcome: float, n: int) -> None:
    low, high = reference.binomtest(round(outcome) * n, n).proportion_ci(0.95, method="wilson")
    expected = high if outcome == 0 else 1 - low
    assert score([outcome] * n).ci95 == pytest.approx(expected, rel=1e-4)  # its z has more digits
    rows = [np.full(n, outcome), np.linspace(0, 1, n)]
    assert score_rows(rows) == [score(row) for row in rows]


def test_balanced_score_by_hand() -> None:
    """Recalls 3/4, 0/2 and 1/1 of classes of 4, 2, 0 and 1 images."""
    right = np.array([1, 1, 0, 1, 0, 0, 1], np.bool_)
    mean, ci95, n = balanced_score(right, (4, 2, 0, 1))
    z = 1.96**2
    variances = []
    for hits, size in ((3, 4), (0, 2), (1, 1)):
        p = (hits + z / 2) / (size + z)
        variances.append(p * (1 - p) / size)
    assert (mean, n) == (pytest.approx((3 / 4 + 0 + 1) / 3), 7)
    assert ci95 == pytest.approx(1.96 * math.sqrt(sum(variances)) / 3)


@pytest.mark.parametrize(
    ("counts", "recalls"),
    [
        ((400, 40, 20), (0.9, 0.5, 0.3)),
        ((10,) * 30, tuple(np.linspace(0.05, 0.95, 30))),
        ((300, 3), (1.0, 0.0)),
    ],
)
def test_the_interval_of_balanced_accuracy_covers_it(
    counts: tuple[int, ...], recalls: tuple[float, ...]
) -> None:
    rng = np.random.default_rng(0)
    chances, truth = np.repeat(recalls, counts), float(np.mean(recalls))
    scores = [balanced_score(rng.random(sum(counts)) < chances, counts) for _ in range(600)]
    covered = np.mean([abs(s.mean - truth) <= s.ci95 for s in scores])
    assert covered >= 0.93
    assert min(s.ci95 for s in scores) > 0


def test_one_outcome_has_no_interval_and_none_is_an_error() -> None:
    assert math.isnan(score([0.5]).ci95)
    with pytest.raises(UsageError, match="no outcomes"):
        score([])


def test_rows_at_once_have_the_scores_of_one_by_one() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 76, n) / 75 for n in (600, 1, 600, 129, 600, 129, 7)]
    numbers = [s[:2] for s in score_rows(rows)]
    np.testing.assert_array_equal(numbers, [score(row)[:2] for row in rows])  # nan included
    assert [s.n for s in score_rows(rows)] == [row.size for row in rows]


@given(accuracies, st.integers(0, 2**31))
def test_paired_p_is_the_z_test_on_the_differences(values: list[float], seed: int) -> None:
    a = np.array(values)
    b = np.random.default_rng(seed).permutation(a) * 0.9
    comparison = paired([a], [b])
    gaps = a - b
    assert comparison.gap == pytest.approx(gaps.mean(), abs=1e-12)
    if comparison.se > 0:
        z = gaps.mean() / reference.sem(gaps)
        assert comparison.p == pytest.approx(2 * reference.norm.sf(abs(z)), abs=1e-9)


def test_columns_count_equally_whatever_their_size() -> None:
    """Gaps 0.2 over 2 episodes and 0.4 over 4 average to 0.3; variances add as 1/4 each."""
    a = [np.array([0.5, 0.7]), np.array([0.9, 0.7, 0.9, 0.7])]
    b = [np.array([0.4, 0.4]), np.array([0.4, 0.4, 0.4, 0.4])]
    comparison = paired(a, b)
    assert comparison.gap == pytest.approx(0.3)
    assert comparison.n == 6
    expected = math.sqrt(0.02 / 2 + (0.04 / 3) / 4) / 2
    assert comparison.se == pytest.approx(expected)
    assert comparison.ci95 == pytest.approx(1.96 * expected)


@given(accuracies)
def test_identical_entries_tie_and_swapping_mirrors(values: list[float]) -> None:
    a = np.array(values)
    assert paired([a], [a])[:4] == (0.0, 0.0, 1.0, a.size)
    b = a[::-1].copy()
    one, other = paired([a], [b]), paired([b], [a])
    assert one.gap == pytest.approx(-other.gap)
    assert one.p == pytest.approx(other.p)


def test_a_constant_gap_is_certain() -> None:
    a = np.array([0.5, 0.75, 1.0])
    assert paired([a], [a - 0.25]).p == 0.0


def test_sides_must_match() -> None:
    a = np.zeros(3)
    for left, right in (([a], [a, a]), ([], []), ([a], [np.zeros(4)])):
        with pytest.raises(UsageError, match="same episodes"):
            paired(left, right)


def test_columns_over_the_same_episodes_add_up_episode_by_episode() -> None:
    """By hand: gaps (.1, .3) and (.2, .2) of one draw sum to (.3, .5); sd .02 ** .5."""
    gaps = [np.array([0.1, 0.3]), np.array([0.2, 0.2])]
    zeros = [np.zeros(2), np.zeros(2)]
    comparison = paired(gaps, zeros, ["e", "e"])
    assert comparison.gap == pytest.approx(0.2)
    assert comparison.se == pytest.approx(math.sqrt(0.02 / 2) / 2)
    assert overall_sd(gaps, ["e", "e"]) == pytest.approx(math.sqrt(0.02) / 2)
    opposite = [np.array([0.1, 0.3]), np.array([0.3, 0.1])]
    assert paired(opposite, zeros, ["e", "e"]).se == pytest.approx(0.0)
    assert paired(opposite, zeros, ["e", "f"]).se == pytest.approx(math.sqrt(0.02) / 2)
    assert overall_sd(opposite) == pytest.approx(math.sqrt(0.04) / 2)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(0, 10**6))
def test_rows_at_once_have_the_bits_of_one_by_one(kinds: list[int], seed: int) -> None:
    """Rows of 12 columns: of equal length; the same with other draws; of two lengths."""
    rng = np.random.default_rng(seed)
    lengths = {0: [40] * 12, 1: [40] * 12, 2: [40] * 6 + [1] * 6}
    names = {0: [*"abcdefghijkl"], 1: [*"aabbccddeeff"], 2: [*"abcdefabcdef"]}
    rows = [[rng.integers(0, 76, n) / 75 for n in lengths[kind]] for kind in kinds]
    draws = [names[kind] for kind in kinds]
    one_by_one = [measure_columns(*row) for row in zip(rows, draws, strict=True)]
    assert repr(measure_rows(rows, draws)) == repr(one_by_one)  # nan for the third kind


def test_unequal_parts_of_the_same_episodes_count_as_the_worst_case() -> None:
    a = [np.array([0.1, 0.3]), np.array([0.1, 0.3, 0.1, 0.3])]
    errors = [math.sqrt(0.02 / 2), math.sqrt(0.04 / 3 / 4)]
    comparison = paired(a, [np.zeros(2), np.zeros(4)], ["e", "e"])
    assert comparison.se == pytest.approx(sum(errors) / 2)
    assert overall_sd(a, ["e", "e"]) == pytest.approx((math.sqrt(0.02) + math.sqrt(0.04 / 3)) / 2)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_against_its_definition(p: list[float]) -> None:
    order = sorted(range(len(p)), key=lambda i: p[i])
    expected, running = [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        running = max(running, min(1.0, (len(p) - place) * p[i]))
        expected[i] = running
    assert holm(p) == pytest.approx(expected)
