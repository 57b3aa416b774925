"""Paired comparison of one entry with many, computed for all pairs at once.

Columns over the same draws are added first, as whole numbers. Then the standard error of the gap of
two entries with the counts a and b of n episodes is sqrt(n sum (a - b)^2 - (sum (a - b))^2) /
(n sqrt(n - 1)) of a query (`fsbench.core.statistics.paired` for one pair), where all sums are exact
and only sum a b has to be computed for each pair. Entries with equal numbering of their outcomes
share one matrix per column; with other entries they are compared on the shared numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from leaderboard.ranking.gaps import Gaps
from leaderboard.ranking.outcomes import Outcomes, SummedCounts
from leaderboard.ranking.seeds import SeedErrors

NOTHING = np.array([[0.0], [math.nan], [math.nan], [0.0], [0.0]])
"""Fields of the gap over an entry without a shared outcome."""


@dataclass(frozen=True, eq=False)
class GroupedCounts:
    """Outcomes of N entries on some of their episodes.

    means (N, C); groups: counts of each group of columns over the same draws: their sum if the
    columns have equal length, else one block per column.
    """

    means: NDArray[np.float64]
    groups: tuple[tuple[SummedCounts, ...], ...]

    @cached_property
    def sizes(self) -> list[int]:
        """The number of outcomes of the shortest column of each group."""
        return [min(block.counts.shape[1] for block in group) for group in self.groups]

    def ahead(self, row: int, others: "GroupedCounts", first: int) -> NDArray[np.float64]:
        """Return (3, N): gaps of one entry over others from row `first` on, errors, freedoms."""
        gaps = (self.means[row] - others.means[first:]).mean(axis=1)
        squares = np.stack(
            [
                sum(compute_errors(x, row, y, first) for x, y in zip(a, b, strict=True)) ** 2
                for a, b in zip(self.groups, others.groups, strict=True)
            ]
        )
        errors = np.sqrt(squares.sum(axis=0)) / self.means.shape[1]
        return np.stack([gaps, errors, statistics.combine_freedom(squares, self.sizes)])

    @property
    def errors(self) -> NDArray[np.float64]:
        """The standard errors (N, N) of the gaps of all entries."""
        every = slice(None)
        groups = (sum(compute_errors(x, every, x, 0) for x in group) ** 2 for group in self.groups)
        return np.asarray(np.sqrt(sum(groups)) / self.means.shape[1])


@dataclass(frozen=True, eq=False)
class AlignedEntries:
    """N entries, best first, with equal numbering of their outcomes in all C columns.

    columns: outcomes of the first entry, for what all have in common; right: counts (N, n) of each
    column; out_of (C, N): queries of an outcome.
    """

    names: tuple[str, ...]
    columns: Sequence[Outcomes]
    right: Sequence[NDArray[Any]]
    out_of: NDArray[np.int64]

    @classmethod
    def stack(cls, outcomes: Mapping[str, Sequence[Outcomes]]) -> "AlignedEntries":
        rows = list(outcomes.values())
        right = [np.stack([o.right for o in column]) for column in zip(*rows, strict=True)]
        out_of = np.array([[o.out_of for o in columns] for columns in rows]).T
        return cls(tuple(outcomes), rows[0], right, out_of)

    @cached_property
    def order(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def grouped(self) -> GroupedCounts:
        """The means of columns, and the counts by draws."""
        means = [counts.mean(axis=1) / n for counts, n in zip(self.right, self.out_of, strict=True)]
        columns_by_draw: dict[str, list[int]] = {}
        for column, outcomes in enumerate(self.columns):
            columns_by_draw.setdefault(outcomes.draws, []).append(column)
        groups = []
        for columns in columns_by_draw.values():
            equal_length = len({self.right[c].shape for c in columns}) == 1
            blocks = [columns] if equal_length else [[c] for c in columns]
            added = (SummedCounts.add([self.right[c] for c in b], self.out_of[b]) for b in blocks)
            groups.append(tuple(added))
        return GroupedCounts(np.stack(means, axis=1), tuple(groups))

    def share(self, other: "AlignedEntries") -> "AlignedEntries":
        """Return the outcomes that the entries share with others, column by column."""
        if other is self:
            return self
        columns, right = [], []
        for a, b, counts in zip(self.columns, other.columns, self.right, strict=True):
            index = np.intersect1d(a.index, b.index) if a.draws == b.draws else a.index[:0]
            columns.append(a.select(index))
            right.append(counts[:, np.searchsorted(a.index, index)])
        return replace(self, columns=columns, right=right)


def compute_errors(
    one: SummedCounts, row: int | slice, many: SummedCounts, first: int
) -> NDArray[np.float64]:
    """Return the standard errors (N,) of the gaps of one row over others from row `first` on.

    Of several rows they are (rows, N). They are nan for one outcome, which has no spread.
    """
    n = one.counts.shape[1]
    out_of, row_squares, row_sums = (x[row, None] for x in (one.out_of, one.squares, one.sums))
    common = np.lcm(out_of, many.out_of[first:])
    if n == 1:
        return np.full(common.shape, math.nan)
    a, b = common // out_of, common // many.out_of[first:]
    products = (many.counts[first:] @ one.counts[row].T).T.astype(np.float64)
    squares = a**2 * row_squares + b**2 * many.squares[first:] - 2 * a * b * products
    sums = a * row_sums - b * many.sums[first:]
    spread = np.maximum(n * squares - sums**2, 0)
    return np.asarray(np.sqrt(spread / (n - 1)) / (n * common))


class PairwiseGaps:
    """Gaps between entries, best first; outcomes: name -> outcomes of the columns, in order.

    The errors contain the variance of seeds where entries have several (seeds.py).
    """

    def __init__(self, outcomes: Mapping[str, Sequence[Outcomes]]) -> None:
        self.seed_errors = SeedErrors(outcomes)
        groups: dict[tuple[object, ...], dict[str, Sequence[Outcomes]]] = {}
        for name, columns in outcomes.items():
            key = tuple((o.draws, o.numbering) for o in columns)
            groups.setdefault(key, {})[name] = columns
        self.fields = [AlignedEntries.stack(entries) for entries in groups.values()]
        self.home = {name: field for field in self.fields for name in field.names}

    def behind(self, leader: str, others: Sequence[str]) -> Gaps:
        """Return the leader's gap over each of the others, in their order."""
        fields = np.empty((5, len(others)))
        for field in self.fields:
            indices = [i for i, name in enumerate(others) if name in field.order]
            if indices:
                rows = np.array([field.order[others[i]] for i in indices])
                fields[:, indices] = self.against(leader, field, rows)
        gap, se, freedom, n, fewest = fields
        no_seeds = np.zeros(len(others), np.bool_)
        gaps = Gaps(tuple(others), gap, se, freedom, n, fewest, no_seeds)
        return self.seed_errors.widen_gaps(leader, gaps)

    def against(
        self, leader: str, field: AlignedEntries, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the first five fields of Gaps (5, N) over these rows of a field."""
        home = self.home[leader]
        left, right = home.share(field), field.share(home)
        sizes = [o.index.size for o in left.columns]
        if not all(sizes):
            return NOTHING
        first = int(rows.min())
        gaps = left.grouped.ahead(home.order[leader], right.grouped, first)[:, rows - first]
        counts = [sum(sizes)], [min(sizes)]
        return np.concatenate([gaps, np.broadcast_to(counts, (2, rows.size))])
