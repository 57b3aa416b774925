"""Packed data of the page: they come back as they were, within the grid, and weigh little."""

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import site as fakes_site

from fsbench.core import statistics
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.site import data, packing, page

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\u2028\u2029&"
WITHIN = 0.0051
"""Relative error of half-widths on a grid of steps of 1 %."""


def test_hostile_text_cannot_end_the_element_and_nan_is_refused() -> None:
    text = packing.embed_json({HOSTILE: [HOSTILE]})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {HOSTILE: [HOSTILE]}
    with pytest.raises(ValueError, match="JSON"):
        packing.embed_json([float("nan")])


@settings(max_examples=30)
@given(st.text(), st.binary())
def test_any_value_comes_back(text: str, data: bytes) -> None:
    assert json.loads(packing.embed_json([text])) == [text]
    assert zlib.decompress(base64.b64decode(packing.pack_bytes(data))) == data


def outcomes(right: Sequence[int], draws: str = "d", start: int = 0) -> Outcomes:
    """So many right queries of 75 in each episode."""
    index = np.arange(start, start + len(right))
    return Outcomes(index, np.array(right, np.uint8), draws, 75)


def test_every_count_of_75_queries_falls_in_its_bin_and_chance_of_five_ways_begins_one() -> None:
    assert packing.count_accuracies(outcomes(range(76))).tolist() == [3] * 24 + [4]
    assert packing.count_accuracies(outcomes([14, 15]))[4:6].tolist() == [1, 1]


def test_histograms_lie_row_by_row_little_endian_without_probes() -> None:
    columns = ("isic:5w1s/linear@ibm 32px", "isic:5w5s/linear@ibm 32px", "isic:probe 32px")
    many = outcomes([30] * 300)
    entries = {"a": {columns[1]: many, columns[2]: many}, "b": {columns[0]: many}}
    packed = packing.pack_histograms(entries, "ab", columns)
    counts = np.frombuffer(packed, "<u2").reshape(2, 3, packing.BINS)
    assert counts[0, 1, 10] == counts[1, 0, 10] == counts.sum() / 2 == 300


def draw_outcomes(seed: int, base: int = 0, draws: str = "d") -> Outcomes:
    """Counts of 40 episodes out of 75 that share the difficulty of their episodes."""
    shared = np.random.default_rng(base).normal(45, 6, 40)
    noise = np.random.default_rng([seed, base]).normal(0, 3, 40)
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


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans())
def test_half_widths_stand_at_the_index_of_their_pair(seed: int, together: bool) -> None:
    draws = ("d", "d") if together else ("d", "e")
    names, blocks = "abcd", ("xy", "x", "y")
    entries = {
        name: {c: draw_outcomes(4 * seed + i, j, draws[j]) for j, c in enumerate("xy")}
        for i, name in enumerate(names)
    }
    halves = iter(read_halves(entries, "xy"))
    for columns, j in product(blocks, range(len(names))):
        for i in range(j):
            pair = ([entries[n][c].values for c in columns] for n in (names[i], names[j]))
            exact = statistics.paired(*pair, draws[: len(columns)]).ci95
            assert next(halves) == pytest.approx(exact, rel=WITHIN)
    assert [*halves] == []


def test_constant_gaps_have_no_error_and_one_flipped_query_is_none() -> None:
    right = [60] * 600
    for other, is_constant in (([61] * 600, True), ([59, *right[1:]], False)):
        halves = read_halves({"a": {"x": outcomes(right)}, "b": {"x": outcomes(other)}}, "x")
        assert [half == 0 for half in halves] == [is_constant] * 2


@pytest.mark.parametrize(
    ("a", "b", "unknown"),
    [
        ({"x": [1, 2, 4]}, {"x": outcomes([1, 2, 3], draws="other")}, [True, True]),
        ({"x": [1, 2, 4]}, {"x": outcomes([1, 2, 3], start=1)}, [True, True]),
        ({"x": [1, 2, 4]}, {"x": outcomes([1, 2])}, [True, True]),
        ({"x": [1, 2, 4], "y": [1, 2]}, {"x": outcomes([3, 2, 1])}, [True, False, True]),
    ],
)
def test_other_episodes_and_missing_columns_are_unknown(
    a: dict[str, list[int]], b: dict[str, Outcomes], unknown: list[bool]
) -> None:
    ours = {column: outcomes(right) for column, right in a.items()}
    halves = read_halves({"a": ours, "b": b}, "".join(a))
    assert [math.isnan(half) for half in halves] == unknown


@given(st.floats(packing.LEAST, 10))
def test_the_grid_is_fine_enough(half: float) -> None:
    code = int(packing.encode_halves(np.array([half]))[0])
    assert 1 <= code < packing.UNKNOWN
    assert decode(code) == pytest.approx(half, rel=WITHIN)


def test_large_boards_pair_their_best_entries() -> None:
    assert packing.count_paired_entries(200, 16) == 200
    most = packing.count_paired_entries(1000, 32)
    assert most * (most - 1) / 2 * 33 <= packing.MAX_CODES < (most + 1) * most / 2 * 33


def test_a_page_of_200_entries_of_16_columns_fits_a_megabyte() -> None:
    board = fakes_site.source(
        [f"entry-{i:03}" for i in range(200)],
        targets=("chestx", "cropdisease", "eurosat", "isic"),
        shots=(1, 5, 20, 50),
        n_episodes=40,
    )
    made = data.build_page_data(*board)
    (track,) = made["tracks"]
    assert len(track["entries"]) == track["paired"] == 200
    assert len(track["columns"]) == 16
    sizes = {key: len(str(value)) for key, value in track.items()}
    assert len(page.render_page(made).encode()) < 1_000_000, sizes
