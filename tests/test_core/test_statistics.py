"""Statistics against numbers by hand, SciPy as the independent reference, and simulation."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from fsbench.core.errors import UsageError
from fsbench.core.statistics import (
    DETECTABLE,
    RESAMPLES,
    balanced_score,
    episodes_needed,
    holm,
    measure_rows,
    paired,
    score,
    score_rows,
    shares,
    sign_flip,
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
    assert math.isnan(score([outcome]).ci95)
    with pytest.raises(UsageError, match="no outcomes"):
        score([])


def test_balanced_score_by_hand() -> None:
    """Recalls 3/4, 0/2 and 1/1 of classes of 4, 2, 0 and 1 images."""
    right = np.array([1, 1, 0, 1, 0, 0, 1], np.bool_)
    mean, ci95, n = balanced_score(right, (4, 2, 0, 1))
    z = 1.96**2
    shown = [((hits + z / 2) / (size + z), size) for hits, size in ((3, 4), (0, 2), (1, 1))]
    variance = sum(p * (1 - p) / size for p, size in shown)
    assert (mean, n) == (pytest.approx((3 / 4 + 0 + 1) / 3), 7)
    assert ci95 == pytest.approx(1.96 * math.sqrt(variance) / 3)


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
    assert np.mean([abs(s.mean - truth) <= s.ci95 for s in scores]) >= 0.93
    assert min(s.ci95 for s in scores) > 0


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(0, 10**6))
def test_rows_at_once_have_the_bits_of_one_by_one(kinds: list[int], seed: int) -> None:
    """Rows of 12 columns: of equal length; the same with other draws; of two lengths."""
    rng = np.random.default_rng(seed)
    lengths = {0: [40] * 12, 1: [40] * 12, 2: [40] * 6 + [1] * 6}
    names = {0: [*"abcdefghijkl"], 1: [*"aabbccddeeff"], 2: [*"abcdefabcdef"]}
    rows = [[rng.integers(0, 76, n) / 75 for n in lengths[kind]] for kind in kinds]
    draws = [names[kind] for kind in kinds]
    one_by_one = [measure_rows([r], [d])[0] for r, d in zip(rows, draws, strict=True)]
    assert repr(measure_rows(rows, draws)) == repr(one_by_one)  # nan for the third kind
    columns = [column for row in rows for column in row] + [np.ones(40)]
    assert repr(score_rows(columns)) == repr([score(column) for column in columns])


@given(accuracies, st.integers(0, 2**31))
def test_paired_p_is_the_z_test_on_the_differences(values: list[float], seed: int) -> None:
    a = np.array(values)
    b = np.random.default_rng(seed).permutation(a) * 0.9
    comparison, gaps = paired([a], [b]), a - b
    assert comparison.gap == pytest.approx(gaps.mean(), abs=1e-12)
    if comparison.se > 0:
        z = gaps.mean() / reference.sem(gaps)
        assert comparison.p == pytest.approx(2 * reference.norm.sf(abs(z)), abs=1e-9)
    mirrored = paired([b], [a])
    assert (mirrored.gap, mirrored.p) == pytest.approx((-comparison.gap, comparison.p))
    assert paired([a], [a])[:4] == (0.0, 0.0, 1.0, a.size)


TWO, FOUR = [0.1, 0.3], [0.5, 0.3, 0.5, 0.3]
SD2, SD4 = math.sqrt(0.02), math.sqrt(0.04 / 3)


@pytest.mark.parametrize(
    ("gaps", "draws", "gap", "se"),
    [
        ([[0.25] * 3], "", 0.25, 0.0),
        ([TWO, FOUR], "", 0.3, math.hypot(SD2 / 2**0.5, SD4 / 2) / 2),
        ([TWO, FOUR], "ee", 0.3, (SD2 / 2**0.5 + SD4 / 2) / 2),
        ([TWO, [0.2, 0.2]], "ee", 0.2, SD2 / 2**0.5 / 2),
        ([TWO, TWO[::-1]], "ee", 0.2, 0.0),
        ([TWO, TWO[::-1]], "ef", 0.2, SD2 / 2),
    ],
    ids=["constant", "columns count equally", "worst case", "sum", "opposite", "independent"],
)
def test_gaps_of_columns_by_hand(
    gaps: list[list[float]], draws: str, gap: float, se: float
) -> None:
    """Columns of one draw add up episode by episode; of unequal length, they count as worst."""
    columns = [np.array(column) for column in gaps]
    comparison = paired(columns, [0 * column for column in columns], draws)
    assert (comparison.gap, comparison.se) == pytest.approx((gap, se), abs=1e-12)
    assert comparison.ci95 == pytest.approx(1.96 * se, abs=1e-12)
    assert comparison.n == sum(map(len, gaps))
    assert paired([np.full(3, 0.25)], [np.zeros(3)]).p == 0.0


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_against_its_definition(p: list[float]) -> None:
    order = sorted(range(len(p)), key=lambda i: p[i])
    expected, running = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p) - rank) * p[i]))
        expected[i] = running
    assert holm(p) == pytest.approx(expected)


def test_so_many_episodes_detect_the_gap_and_one_fewer_does_not_quite() -> None:
    """ChestX and EuroSAT at 5 shots, sd 5.4 and 4.3 points: about 920 and 580 episodes."""
    assert [episodes_needed(sd, 0.005) for sd in (0.054, 0.043)] == [916, 581]
    for gap in (0.004, 0.02, 0.3):
        n = episodes_needed(0.1, gap)
        assert DETECTABLE * 0.1 / np.sqrt(n) <= gap
        assert n == 2 or DETECTABLE * 0.1 / np.sqrt(n - 1) > gap
    assert episodes_needed(0.0, 0.3) == 2


@pytest.mark.parametrize("sds", [(0.06,), (0.03, 0.06, 0.12)])
def test_the_test_finds_the_gap_as_often_as_promised(sds: tuple[float, ...]) -> None:
    """On columns of different spread, as a board averages them."""
    rng, trials = np.random.default_rng(0), 2000
    n = episodes_needed(float(np.linalg.norm(sds)) / len(sds), 0.01)
    draws = [[rng.normal(0.01, sd, n) for sd in sds] for _ in range(trials)]
    share = np.mean([measured.p < 0.05 for measured in measure_rows(draws, [()] * trials)])
    assert abs(share - 0.8) < 4 * np.sqrt(0.16 / trials)


def enumerated(parts: list[float]) -> float:
    """Twice the smaller share of all signs whose sum is at least, or at most, the one seen."""
    signs = np.array(list(product((-1, 1), repeat=len(parts))))
    sums, total = signs @ parts, sum(parts)
    above, below = (np.mean(k * sums >= k * total - 1e-9) for k in (1, -1))
    return float(min(1.0, 2 * min(above, below)))


@settings(max_examples=25)
@given(st.lists(st.integers(-9, 9).map(lambda k: k / 75), min_size=1, max_size=8))
def test_few_parts_are_enumerated(parts: list[float]) -> None:
    assert sign_flip(np.array(parts), "x") == pytest.approx(enumerated(parts))


@pytest.mark.parametrize(("n", "seed"), [(14, 0), (100, 1), (601, 3)])
@pytest.mark.parametrize("z", [0.0, 1.0, 2.6])
def test_many_parts_agree_with_the_z_test(n: int, seed: int, z: float) -> None:
    """The z test takes the spread about the mean, so it is compared where that hardly matters."""
    noise = np.random.default_rng(seed).normal(0, 1, n)
    gaps = noise - noise.mean() + z * noise.std(ddof=1) / np.sqrt(n)
    expected = paired([gaps], [np.zeros(n)]).p
    error = 4 * np.sqrt(expected / RESAMPLES) + (0.06 if n < 50 else 0.006)
    assert sign_flip(gaps, "x", n) == pytest.approx(expected, abs=error)


def test_same_names_same_p_and_swapped_sides_mirror() -> None:
    parts = np.random.default_rng(4).normal(0.1, 1, 200)
    first = sign_flip(parts, "a")
    assert 0.01 < first < 0.9
    assert sign_flip(parts, "a") == sign_flip(-parts, "a") == first != sign_flip(parts, "b")
    assert sign_flip(np.zeros(50), "a") == sign_flip(np.array([]), "a") == 1.0


def test_shares_by_hand_and_columns_over_the_same_episodes_flip_together() -> None:
    """Two columns over episodes 0..2 and 1..2, one of its own: sums per episode, over 3 columns."""
    index = [np.array([0, 1, 2]), np.array([1, 2]), np.array([1, 2])]
    gaps = [np.array([3.0, 6.0, 9.0]), np.array([2.0, 4.0]), np.array([8.0, 10.0])]
    fractions = shares(index, gaps, ["e", "e", "f"])
    assert fractions == pytest.approx(np.array([1, 2 + 1, 3 + 2, 4, 5]) / 3)
    many, numbers = np.random.default_rng(5).normal(0.14, 1, 200), np.arange(200)
    once = sign_flip(many / 200, "x")
    joint, apart = (shares([numbers] * 4, [many] * 4, draws) for draws in ("eeee", "efgh"))
    assert sign_flip(joint, "x") == once > 0.02
    assert sign_flip(apart, "x") < once / 10


def test_false_alarms_keep_to_alpha() -> None:
    """Simulated comparisons without a gap, skewed and discrete, as accuracies near 1 are."""
    right = np.random.default_rng(40).binomial(75, 0.9, (2, 300, 40)) / 75
    pairs = enumerate(zip(*right, strict=True))
    alarms = sum(sign_flip(a - b, "trial", i) < 0.05 for i, (a, b) in pairs)
    low, high = reference.binom.interval(0.999, 300, 0.05)
    assert low <= alarms <= high
