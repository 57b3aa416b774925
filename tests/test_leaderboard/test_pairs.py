"""One against many equals pair by pair: a plain reference, over boards of any shape."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fsbench.core import statistics
from fsbench.core.statistics import Paired
from leaderboard.ranking.outcomes import Outcomes, SummedCounts
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import exclude_incomparable, rank_entries

Held = Mapping[str, Mapping[str, Outcomes]]


def compare(a: Mapping[str, Outcomes], b: Mapping[str, Outcomes], columns: Sequence[str]) -> Paired:
    """The definition: shared outcomes of every column, then stats.paired."""
    left, right = [], []
    for column in columns:
        _, i, j = np.intersect1d(a[column].index, b[column].index, return_indices=True)
        left.append(a[column].values[i])
        right.append(b[column].values[j])
    if not all(x.size for x in left):
        return Paired(0.0, float("nan"), 1.0, 0)
    paired = statistics.paired(left, right, [a[column].draws for column in columns])
    return paired if paired.p == paired.p else paired._replace(p=1.0)


def adjust_by_definition(gap: Paired, rows: int) -> float:
    """Two-sided p of Student's t times the number of pairs, for fewer than 100 episodes."""
    if gap.gap == 0 or np.isnan(gap.se):
        return 1.0
    if gap.se == 0:
        return 0.0
    p = 2 * scipy.stats.t.sf(abs(gap.gap) / gap.se, gap.freedom)
    return min(1.0, float(p) * rows * (rows - 1) / 2)


def plain(
    entries: Held, columns: Sequence[str]
) -> list[tuple[int, str, Paired | None, float | None]]:
    """Tiers by the leader rule, pair by pair: (tier, name, behind, p)."""
    overall = {
        n: float(np.mean([statistics.score(h[c].values).mean for c in columns]))
        for n, h in entries.items()
    }
    remaining, ranked, tier = sorted(overall, key=lambda n: (-overall[n], n)), [], 0
    while remaining:
        tier += 1
        leader, *others = remaining
        gaps = {n: compare(entries[leader], entries[n], columns) for n in others}
        p = {n: adjust_by_definition(gap, len(overall)) for n, gap in gaps.items()}
        tied = [n for n in remaining if n == leader or gaps[n].gap <= 0 or p[n] >= 0.05]
        ranked += [(tier, n, gaps.get(n), p.get(n)) for n in tied]
        remaining = [n for n in remaining if n not in tied]
    return ranked


def replace_seeds(outcomes: Outcomes) -> Outcomes:
    """The mean over seeds as outcomes of its own, without the variance of the seeds."""
    return replace(outcomes, seeds=())


@st.composite
def boards(draw: st.DrawFn) -> tuple[dict[str, dict[str, Outcomes]], list[str]]:
    """Entries of equal or differing skill, whole or short, of one or several seeds, a copy among
    them; columns over the same or other episodes, of equal or differing length, and a probe."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = draw(
        st.lists(st.tuples(st.sampled_from("xy"), st.integers(1, 30)), min_size=1, max_size=4)
    )
    columns = [f"column {i}" for i in range(len(shapes))]
    entries: dict[str, dict[str, Outcomes]] = {}
    for name in draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)):
        if entries and draw(st.integers(0, 4)) == 0:
            entries[name] = entries[next(iter(entries))]
            continue
        skill, n_seeds = draw(st.sampled_from([(0.2, 1), (0.5, 1), (0.55, 3), (0.9, 2)]))
        first, short = draw(st.sampled_from([(0, 0), (0, 0), (0, 5), (3, 0)]))
        entries[name] = {}
        for column, (draws, n) in zip(columns, shapes, strict=True):
            index = np.arange(n)[min(first, n - 1) : max(n - short, 1)]
            index = index if index.size else np.arange(1)
            seeds = [
                Outcomes(index, rng.binomial(75, skill, index.size).astype(np.uint8), draws, 75)
                for _ in range(n_seeds)
            ]
            entries[name][column] = replace_seeds(Outcomes.average(seeds))
    return entries, columns


@settings(max_examples=60)
@given(boards())
def test_a_field_at_once_is_every_pair(board: tuple[Held, list[str]]) -> None:
    entries, columns = board
    pairs = PairwiseGaps(
        {name: [columns_of_entry[c] for c in columns] for name, columns_of_entry in entries.items()}
    )
    for leader in entries:
        others = [name for name in entries if name != leader]
        gaps = pairs.behind(leader, others)
        assert list(gaps) == others
        for name in others:
            expected = compare(entries[leader], entries[name], columns)
            assert gaps[name] == pytest.approx(expected, abs=1e-12, rel=0, nan_ok=True)


@settings(max_examples=40)
@given(boards())
def test_the_ranking_is_that_of_the_definition(board: tuple[Held, list[str]]) -> None:
    entries, columns = board
    assume(not exclude_incomparable(entries, columns))
    standings = rank_entries(entries, columns).entries
    expected = plain(entries, columns)
    assert [(s.tier, s.name) for s in standings] == [(tier, name) for tier, name, _, _ in expected]
    for standing, (_, _, behind, p) in zip(standings, expected, strict=True):
        if behind is None:
            assert (standing.behind, standing.p) == (None, None)
        else:
            assert standing.behind == pytest.approx(behind, abs=1e-12, rel=0, nan_ok=True)
            assert standing.p == pytest.approx(p, abs=1e-12, rel=0)


def test_twins_have_no_gap_at_all() -> None:
    """Not even one of rounding: p is 1, not nan and not next to 0."""
    right = np.random.default_rng(0).integers(0, 75, 600).astype(np.uint8)
    twin = [Outcomes(np.arange(600), right, "episodes", 75)] * 2
    assert PairwiseGaps({"a": twin, "b": twin}).behind("a", ["b"])["b"][:4] == (0.0, 0.0, 1.0, 1200)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 200), min_size=1, max_size=3))
def test_sums_of_counts_and_of_their_products_are_exact(seed: int, queries: list[int]) -> None:
    """In either precision, whatever the common denominator; values follow as fractions."""
    rng = np.random.default_rng(seed)
    rows, n = 3, int(rng.integers(1, 40))
    out_of = np.array([queries, queries[::-1], queries]).T
    columns = [rng.integers(0, np.broadcast_to(q[:, None], (rows, n)) + 1) for q in out_of]
    added = SummedCounts.add(columns, out_of)
    for row in range(rows):
        values = [
            sum(Fraction(int(c[row, e]), int(q[row])) for c, q in zip(columns, out_of, strict=True))
            for e in range(n)
        ]
        common = int(added.out_of[row])
        assert [Fraction(int(x), common) for x in added.counts[row]] == values
        assert Fraction(int(added.sums[row]), common) == sum(values)
        assert Fraction(int(added.squares[row]), common**2) == sum(v * v for v in values)
