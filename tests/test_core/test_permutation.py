"""The sign-flip test against full enumeration, the z test, exact counts and simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from fsbench.core import statistics
from fsbench.core.statistics import OCTETS, RESAMPLES, episodes_needed, shares, sign_flip

small = st.lists(st.integers(-9, 9).map(lambda k: k / 75), min_size=1, max_size=8)


def enumerated(parts: list[float]) -> float:
    """Twice the smaller share of all signs whose sum is at least, or at most, the one seen."""
    sums = [sum(s * x for s, x in zip(signs, parts, strict=True)) for signs in signs_of(len(parts))]
    total = sum(parts)
    above, below = (np.mean([k * s >= k * total - 1e-9 for s in sums]) for k in (1, -1))
    return float(min(1.0, 2 * min(above, below)))


def signs_of(n: int) -> list[tuple[int, ...]]:
    return list(product((-1, 1), repeat=n))


@settings(max_examples=25, deadline=None)
@given(small)
def test_few_parts_are_enumerated(parts: list[float]) -> None:
    assert sign_flip(np.array(parts), "x") == pytest.approx(enumerated(parts))


@pytest.mark.parametrize(("n", "seed"), [(14, 0), (100, 1), (600, 2), (601, 3)])
@pytest.mark.parametrize("z", [0.0, 1.0, 2.0, 2.6])
def test_many_parts_agree_with_the_z_test(n: int, seed: int, z: float) -> None:
    """The z test takes the spread about the mean, so it is compared where that hardly matters."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 1, n)
    gaps = noise - noise.mean() + z * noise.std(ddof=1) / np.sqrt(n)
    expected = statistics.paired([gaps], [np.zeros(n)]).p
    error = 4 * np.sqrt(expected / RESAMPLES) + (0.06 if n < 50 else 0.006)
    assert sign_flip(gaps, "x", n) == pytest.approx(expected, abs=error)


def test_equal_parts_are_the_exact_binomial_test() -> None:
    """As McNemar's: 40 images that only one side has right, 28 of them A."""
    parts = np.array([1] * 28 + [-1] * 12 + [0] * 300) / 340
    exact = binomtest(28, 40).pvalue
    assert sign_flip(parts, "x") == pytest.approx(exact, abs=4 * np.sqrt(exact / RESAMPLES))


def test_same_names_same_p_and_swapped_sides_mirror() -> None:
    parts = np.random.default_rng(4).normal(0.1, 1, 200)
    first = sign_flip(parts, "a")
    assert 0.01 < first < 0.9
    assert sign_flip(parts, "a") == sign_flip(-parts, "a") == first
    assert sign_flip(parts, "b") != first
    assert sign_flip(np.zeros(50), "a") == sign_flip(np.array([]), "a") == 1.0


def test_shares_by_hand() -> None:
    """Two columns over episodes 0..2 and 1..2, one of its own: sums per episode, over 3 columns."""
    index = [np.array([0, 1, 2]), np.array([1, 2]), np.array([1, 2])]
    gaps = [np.array([3.0, 6.0, 9.0]), np.array([2.0, 4.0]), np.array([8.0, 10.0])]
    fractions = shares(index, gaps, ["e", "e", "f"])
    assert fractions == pytest.approx(np.array([1, 2 + 1, 3 + 2, 4, 5]) / 3)
    assert fractions.sum() == pytest.approx(np.mean([g.mean() for g in gaps]))


def test_columns_over_the_same_episodes_flip_together() -> None:
    gaps = np.random.default_rng(5).normal(0.14, 1, 200)
    index = np.arange(200)
    once = sign_flip(gaps / 200, "x")
    joint = shares([index] * 4, [gaps] * 4, ["e"] * 4)
    apart = shares([index] * 4, [gaps] * 4, list("efgh"))
    assert sign_flip(joint, "x") == once > 0.02
    assert sign_flip(apart, "x") < once / 10


def test_a_byte_stands_for_eight_signs() -> None:
    assert sorted(map(tuple, OCTETS)) == list(product((-1.0, 1.0), repeat=8))
    assert (OCTETS[0] == 1).all()


def rejected(mean: float, n: int, trials: int, seed: int) -> int:
    """Simulated comparisons that find a gap: skewed and discrete, as accuracies near 1 are."""
    rng = np.random.default_rng(seed)
    right = rng.binomial(75, [[[0.9]], [[0.9 - mean]]], (2, trials, n)) / 75
    return sum(sign_flip(a - b, "trial", i) < 0.05 for i, (a, b) in enumerate(zip(*right)))  # noqa: B905


@pytest.mark.parametrize("n", [12, 40])
def test_false_alarms_keep_to_alpha(n: int) -> None:
    low, high = binom.interval(0.999, 300, 0.05)
    assert low <= rejected(0.0, n, 300, n) <= high


def test_a_planned_number_of_episodes_finds_the_gap_as_often_as_planned() -> None:
    """sd of A - B: two binomials of 75 queries at about 0.89."""
    sd = np.sqrt((0.9 * 0.1 + 0.88 * 0.12) / 75)
    n = episodes_needed(sd, 0.02)
    low, high = binom.interval(0.999, 200, 0.8)
    assert low <= rejected(0.02, n, 200, 7) <= high
