"""Packed half-widths of gaps against fsbench.core.statistics.paired, pair by pair."""

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
WITHIN = 0.0051


def outcomes(right: Sequence[int], draws: str = "d", start: int = 0, out_of: int = 75) -> Outcomes:
    index = np.arange(start, start + len(right))
    return Outcomes(index, np.array(right, np.uint8), draws, out_of)


def random(seed: int, base: int = 0, draws: str = "d", n: int = N) -> Outcomes:
    """Counts out of 75 that share the difficulty of their episodes."""
    shared = np.random.default_rng(base).normal(45, 6, n)
    noise = np.random.default_rng([seed, base]).normal(0, 3, n)
    return outcomes(np.clip(np.rint(shared + noise), 0, 75).astype(int).tolist(), draws)


def read_halves(entries: Mapping[str, Mapping[str, Outcomes]], columns: str) -> list[float]:
    """The half-widths of all pairs, block by block, as the page's script reads them."""
    codes = packing.encode_pairs(entries, [*entries], columns)
    middle = len(codes) // 2
    return [decode(codes[i] + 256 * codes[middle + i]) for i in range(middle)]


def decode(code: int) -> float:
    if code == packing.UNKNOWN:
        return math.nan
    return 0.0 if code == packing.SAME else packing.LEAST * math.exp(packing.STEP * (code - 1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_two_entries_as_stats_paired(seed: int, together: bool) -> None:
    draws = ("d", "d") if together else ("d", "e")
    entries = {
        name: {c: random(2 * seed + i, j, draws[j]) for j, c in enumerate("xy")}
        for i, name in enumerate("ab")
    }
    for half, columns in zip(read_halves(entries, "xy"), ("xy", "x", "y"), strict=True):
        values = [[entries[name][c].values for c in columns] for name in "ab"]
        exact = statistics.paired(values[0], values[1], draws[: len(columns)]).ci95
        assert half == pytest.approx(exact, rel=WITHIN)


def test_every_pair_stands_at_its_place() -> None:
    names = "abcd"
    entries = {name: {"x": random(i), "y": random(i, 7)} for i, name in enumerate(names)}
    halves = read_halves(entries, "xy")
    assert len(halves) == 3 * 6
    for i, j in combinations(range(4), 2):
        two = read_halves({names[k]: entries[names[k]] for k in (i, j)}, "xy")
        assert two == [halves[6 * block + j * (j - 1) // 2 + i] for block in range(3)]


def test_constant_gaps_have_no_error_and_one_flipped_query_is_none() -> None:
    right = [60] * 600
    for other, is_constant in (([61] * 600, True), ([59, *right[1:]], False)):
        halves = read_halves({"a": {"x": outcomes(right)}, "b": {"x": outcomes(other)}}, "x")
        assert [half == 0 for half in halves] == [is_constant] * 2


@pytest.mark.parametrize(
    "other",
    [outcomes([1, 2, 3], draws="other"), outcomes([1, 2, 3], start=1), outcomes([1, 2])],
)
def test_other_episodes_are_unknown(other: Outcomes) -> None:
    entries = {"a": {"x": outcomes([1, 2, 4])}, "b": {"x": other}}
    assert all(map(math.isnan, read_halves(entries, "x")))


def test_a_missing_column_is_unknown_there_and_overall() -> None:
    entries = {"a": {"x": random(1), "y": random(2)}, "b": {"x": random(3)}}
    assert [math.isnan(half) for half in read_halves(entries, "xy")] == [True, False, True]


@given(st.floats(packing.LEAST, 10))
def test_the_grid_is_fine_enough(half: float) -> None:
    code = int(packing.encode_halves(np.array([half]))[0])
    assert 1 <= code < packing.UNKNOWN
    assert decode(code) == pytest.approx(half, rel=WITHIN)


def test_large_boards_pair_their_best_entries() -> None:
    assert packing.count_paired_entries(200, 16) == 200
    most = packing.count_paired_entries(1000, 32)
    assert most * (most - 1) / 2 * 33 <= packing.MAX_CODES < (most + 1) * most / 2 * 33
