"""Packed paired errors against fsbench.core.statistics.paired, pair by pair."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsbench.core import statistics
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.site import packing

N = 40
WITHIN = 0.007


def outcomes(right: Sequence[int], draws: str = "d", start: int = 0, out_of: int = 75) -> Outcomes:
    index = np.arange(start, start + len(right))
    return Outcomes(index, np.array(right, np.uint8), draws, out_of)


def random(seed: int, base: int = 0, draws: str = "d", n: int = N) -> Outcomes:
    """Counts out of 75 that share the difficulty of their episodes."""
    shared = np.random.default_rng(base).normal(45, 6, n)
    noise = np.random.default_rng([seed, base]).normal(0, 3, n)
    return outcomes(np.clip(np.rint(shared + noise), 0, 75).astype(int).tolist(), draws)


def decode_ratio(code: int) -> float:
    """The ratio of a code as the page's script reads it; nan for UNKNOWN."""
    if code == packing.UNKNOWN:
        return math.nan
    return 0.0 if code == packing.SAME else packing.LOW * math.exp(packing.STEP * (code - 1))


def half(
    entries: Mapping[str, Mapping[str, Outcomes]], columns: Sequence[str], block: int
) -> float:
    """Standard error of the gap of the only two entries, as the page reads it from a block."""
    names = list(entries)
    n_pairs = len(names) * (len(names) - 1) // 2
    ratio = decode_ratio(packing.encode_pairs(entries, names, columns)[block * n_pairs])
    if block:
        alone = [
            statistics.score(entries[n][columns[block - 1]].values).ci95 / statistics.Z95
            for n in names
        ]
    else:
        alone = [packing.estimate_overall_error(entries[name], columns) for name in names]
    return ratio * math.hypot(*alone)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_two_entries_as_stats_paired(seed: int, together: bool) -> None:
    draws = ("d", "d") if together else ("d", "e")
    entries = {
        name: {c: random(2 * seed + i, j, draws[j]) for j, c in enumerate("xy")}
        for i, name in enumerate("ab")
    }
    for block, columns in enumerate(("xy", "x", "y")):
        values = [[entries[name][c].values for c in columns] for name in "ab"]
        exact = statistics.paired(values[0], values[1], draws[: len(columns)]).se
        assert half(entries, "xy", block) == pytest.approx(exact, rel=WITHIN)


def test_every_pair_stands_at_its_place() -> None:
    names = "abcd"
    entries = {name: {"x": random(i), "y": random(i, 7)} for i, name in enumerate(names)}
    codes = packing.encode_pairs(entries, names, "xy")
    assert len(codes) == 3 * 6
    for i, j in combinations(range(4), 2):
        two = {names[k]: entries[names[k]] for k in (i, j)}
        for block in range(3):
            place = 6 * block + j * (j - 1) // 2 + i
            assert codes[place] == packing.encode_pairs(two, [*two], "xy")[block]


def test_equal_entries_and_constant_gaps_have_no_error() -> None:
    same, above = outcomes([10, 20, 30]), outcomes([11, 21, 31])
    assert packing.encode_pairs({"a": {"x": same}, "b": {"x": above}}, "ab", "x") == bytes(2)
    assert decode_ratio(packing.SAME) == 0.0


def test_one_flipped_query_is_no_constant_gap() -> None:
    right = [60] * 600
    entries = {"a": {"x": outcomes(right)}, "b": {"x": outcomes([59, *right[1:]])}}
    assert set(packing.encode_pairs(entries, "ab", "x")) == {
        packing.encode_errors(np.ones((1, 1)), np.ones((1, 1)))[0, 0]
    }


@pytest.mark.parametrize(
    "other",
    [
        outcomes([1, 2, 3], draws="other"),
        outcomes([1, 2, 3], start=1),
        outcomes([1, 2]),
    ],
)
def test_other_episodes_are_unknown(other: Outcomes) -> None:
    entries = {"a": {"x": outcomes([1, 2, 4])}, "b": {"x": other}}
    assert packing.encode_pairs(entries, "ab", "x") == bytes([packing.UNKNOWN] * 2)
    assert math.isnan(decode_ratio(packing.UNKNOWN))


def test_a_missing_column_is_unknown_there_and_overall() -> None:
    entries = {"a": {"x": random(1), "y": random(2)}, "b": {"x": random(3)}}
    overall, x, y = packing.encode_pairs(entries, "ab", "xy")
    assert (overall, y) == (packing.UNKNOWN, packing.UNKNOWN)
    assert x not in (packing.UNKNOWN, packing.SAME)


def test_a_ratio_below_the_grid_is_never_understated() -> None:
    code = packing.encode_errors(np.array([[1e-6]]), np.array([[1.0]]))[0, 0]
    assert decode_ratio(int(code)) == pytest.approx(packing.LOW)


@given(st.floats(packing.LOW, math.sqrt(2)))
def test_the_grid_is_fine_enough(ratio: float) -> None:
    code = int(packing.encode_errors(np.array([[ratio]]), np.ones((1, 1)))[0, 0])
    assert 1 <= code <= 253
    assert decode_ratio(code) == pytest.approx(ratio, rel=WITHIN)


def test_large_boards_pair_their_best_entries() -> None:
    assert packing.count_paired_entries(200, 16) == 200
    most = packing.count_paired_entries(1000, 32)
    assert most * (most - 1) / 2 * 33 <= packing.MAX_CODES < (most + 1) * most / 2 * 33
