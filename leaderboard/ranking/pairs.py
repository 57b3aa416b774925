"""Paired comparison of one entry with many, computed for all pairs at once.

Columns over the same draws are added first, as whole numbers. Then the standard error of the gap of
two entries with the counts a and b of n episodes is sqrt(n sum (a - b)^2 - (sum (a - b))^2) /
(n sqrt(n - 1)) of a query (`fsbench.core.statistics.paired` for one pair), where all sums are exact
and only sum a b has to be computed for each pair. Entries with equal numbering of their outcomes
share one matrix per column; with other entries they are compared on the shared numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from leaderboard.ranking.gaps import Gaps
from leaderboard.ranking.outcomes import Outcomes, SummedCounts, count_up
from leaderboard.ranking.seeds import SeedErrors

NOTHING = np.array([[0.0], [math.nan], [math.nan], [0.0], [0.0]])
"""Fields of the gap over an entry without a shared outcome."""

Positions = Sequence[NDArray[np.int64]]
"""Positions of outcomes, one array per column."""


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

    outcomes: name -> outcomes of the columns, in order; order: name -> row.
    """

    outcomes: Mapping[str, Sequence[Outcomes]]

    @cached_property
    def order(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.outcomes)}

    @cached_property
    def columns(self) -> Sequence[Outcomes]:
        """The outcomes of the first entry, for what all entries have in common."""
        return next(iter(self.outcomes.values()))

    @cached_property
    def right(self) -> list[NDArray[Any]]:
        """The correct counts (N, n) of each column."""
        columns = zip(*self.outcomes.values(), strict=True)
        return [np.stack([o.right for o in column]) for column in columns]

    @cached_property
    def draws(self) -> list[str]:
        return [o.draws for o in self.columns]

    @cached_property
    def out_of(self) -> NDArray[np.int64]:
        """The queries (C, N) of an outcome."""
        return np.array([[o.out_of for o in columns] for columns in self.outcomes.values()]).T

    @cached_property
    def whole(self) -> GroupedCounts:
        return self.group([np.arange(o.index.size) for o in self.columns], self.draws)

    def at(self, rows: Positions, draws: Sequence[str]) -> GroupedCounts:
        """Return the outcomes at these positions; draws: of each column."""
        same = all(r.size == o.index.size for r, o in zip(rows, self.columns, strict=True))
        return self.whole if same and draws == self.draws else self.group(rows, draws)

    def group(self, rows: Positions, draws: Sequence[str]) -> GroupedCounts:
        columns_by_draw: dict[str, list[int]] = {}
        for column, draw in enumerate(draws):
            columns_by_draw.setdefault(draw, []).append(column)
        means, groups = np.empty((len(self.outcomes), len(draws))), []
        for columns in columns_by_draw.values():
            right = [self.right[c][:, rows[c]] for c in columns]
            for c, counts in zip(columns, right, strict=True):
                means[:, c] = counts.mean(axis=1) / self.out_of[c]
            equal_length = len({counts.shape for counts in right}) == 1
            blocks = [slice(None)] if equal_length else [slice(i, i + 1) for i in range(len(right))]
            added = (SummedCounts.add(right[b], self.out_of[columns][b]) for b in blocks)
            groups.append(tuple(added))
        return GroupedCounts(means, tuple(groups))

    def shared(self, other: "AlignedEntries") -> tuple[Positions, Positions]:
        """Return the positions of the shared outcomes in both, column by column."""
        if other is self:
            rows = [count_up(o.index.size) for o in self.columns]
            return rows, rows
        positions = [
            np.intersect1d(a.index, b.index, assume_unique=True, return_indices=True)[1:]
            for a, b in zip(self.columns, other.columns, strict=True)
        ]
        return [left for left, _ in positions], [right for _, right in positions]


def compute_errors(
    one: SummedCounts, row: int | slice, many: SummedCounts, first: int
) -> NDArray[np.float64]:
    """Return the standard errors (N,) of the gaps of one row over others from row `first` on.

    Of several rows they are (rows, N). They are nan for one outcome, which has no spread.
    """
    n = one.counts.shape[1]
    out_of, own_squares, own_sums = (x[row, None] for x in (one.out_of, one.squares, one.sums))
    common = np.lcm(out_of, many.out_of[first:])
    if n == 1:
        return np.full(common.shape, math.nan)
    a, b = common // out_of, common // many.out_of[first:]
    products = (many.counts[first:] @ one.counts[row].T).T.astype(np.float64)
    squares = a**2 * own_squares + b**2 * many.squares[first:] - 2 * a * b * products
    sums = a * own_sums - b * many.sums[first:]
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
        self.fields = [AlignedEntries(entries) for entries in groups.values()]
        self.home = {name: field for field in self.fields for name in field.outcomes}

    def behind(self, leader: str, others: Sequence[str]) -> Gaps:
        """Return the leader's gap over each of the others, in their order."""
        fields = np.empty((5, len(others)))
        for field in self.fields:
            places = [i for i, name in enumerate(others) if name in field.order]
            if places:
                rows = np.array([field.order[others[i]] for i in places])
                fields[:, places] = self.against(leader, field, rows)
        gap, se, freedom, n, fewest = fields
        no_seeds = np.zeros(len(others), np.bool_)
        gaps = Gaps(tuple(others), gap, se, freedom, n, fewest, no_seeds)
        return self.seed_errors.widen_gaps(leader, gaps)

    def against(
        self, leader: str, field: AlignedEntries, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the first five fields of Gaps (5, N) over these rows of a field."""
        home = self.home[leader]
        left_rows, right_rows = home.shared(field)
        if not all(shared.size for shared in left_rows):
            return NOTHING
        left, right = home.at(left_rows, home.draws), field.at(right_rows, home.draws)
        first = int(rows.min())
        compared = left.ahead(home.order[leader], right, first)[:, rows - first]
        counts = [sum(shared.size for shared in left_rows)], [min(left.sizes)]
        return np.concatenate([compared, np.broadcast_to(counts, (2, rows.size))])
