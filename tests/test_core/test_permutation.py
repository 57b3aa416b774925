"""The sign-flip test against full enumeration, the z test, exact counts and simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from fsbench.core import statistics
from fsbench.core.statistics import RESAMPLES, shares, sign_flip

small = st.lists(st.integers(-9, 9).map(lambda k: k / 75), min_size=1, max_size=8)


def enumerated(parts: list[float]) -> float:
    """Twice the smaller share of all signs whose sum is at least, or at most, the one seen."""
    signs = np.array(list(product((-1, 1), repeat=len(parts))))
    sums, total = signs @ parts, sum(parts)
    above, below = (np.mean(k * sums >= k * total - 1e-9) for k in (1, -1))
    return float(min(1.0, 2 * min(above, below)))


@settings(max_examples=25, deadline=None)
@given(small)
def test_few_parts_are_enumerated(parts: list[float]) -> None:
    assert sign_flip(np.array(parts), "x") == pytest.approx(enumerated(parts))


@pytest.mark.parametrize(("n", "seed"), [(14, 0), (100, 1), (601, 3)])
@pytest.mark.parametrize("z", [0.0, 1.0, 2.6])
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


def test_false_alarms_keep_to_alpha() -> None:
    """Simulated comparisons without a gap, skewed and discrete, as accuracies near 1 are."""
    rng = np.random.default_rng(40)
    right = rng.binomial(75, 0.9, (2, 300, 40)) / 75
    pairs = enumerate(zip(*right, strict=True))
    alarms = sum(sign_flip(a - b, "trial", i) < 0.05 for i, (a, b) in pairs)
    low, high = binom.interval(0.999, 300, 0.05)
    assert low <= alarms <= high
