"""One entry against many: what `rank.compare` gives for each pair, by columns instead of by pairs.

Outcomes of a column are centred and divided by sqrt(n (n - 1)); those over the same draws are added
up first. Then the standard error of the gap of two entries over C columns is the distance of their
vectors, divided by C. Entries that number their outcomes alike form a field, with one matrix a
column; the numbering of another field is cut to what both share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.statistics import Paired
from leaderboard.ranking.outcomes import Outcomes

NOTHING = Paired(0.0, math.nan, 1.0, 0)
"""Without a shared outcome nothing is known."""

Positions = Sequence[NDArray[np.int64]]
"""Positions of outcomes, one array a column."""


@dataclass(frozen=True, eq=False)
class StandardizedOutcomes:
    """Entries of a field on some of their outcomes.

    means (N, C); blocks: for each group of columns over the same draws its standardised outcomes
    (N, n), their sum where the columns are equally long, else one block a column.
    """

    means: NDArray[np.float64]
    blocks: tuple[tuple[NDArray[np.float64], ...], ...]

    def ahead(
        self, row: int, others: StandardizedOutcomes, first: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gaps of one entry over the others from row `first` on, and their standard errors."""
        gaps = (self.means[row] - others.means[first:]).mean(axis=1)
        square = np.zeros(len(gaps))
        for a, b in zip(self.blocks, others.blocks, strict=True):
            square += sum(distances(x[row], y[first:]) for x, y in zip(a, b, strict=True)) ** 2
        return gaps, np.sqrt(square) / self.means.shape[1]


@dataclass(frozen=True, eq=False)
class AlignedEntries:
    """N entries, best first, that number the outcomes of all C columns alike.

    outcomes: name -> those of the columns, in order; order: name -> row.
    """

    outcomes: Mapping[str, Sequence[Outcomes]]

    @cached_property
    def order(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.outcomes)}

    @cached_property
    def columns(self) -> Sequence[Outcomes]:
        """Those of one entry, for what all have in common."""
        return next(iter(self.outcomes.values()))

    @cached_property
    def right(self) -> list[NDArray[Any]]:
        """Per column the counts (N, n), as compact as the outcomes hold them."""
        return [
            np.stack([o.right for o in held]) for held in zip(*self.outcomes.values(), strict=True)
        ]

    @cached_property
    def draws(self) -> list[str]:
        return [o.draws for o in self.columns]

    @cached_property
    def whole(self) -> StandardizedOutcomes:
        return self.scale([np.arange(o.index.size) for o in self.columns], self.draws)

    def at(self, rows: Positions, draws: Sequence[str]) -> StandardizedOutcomes:
        """On these outcomes only; draws: of each column."""
        same = all(r.size == o.index.size for r, o in zip(rows, self.columns, strict=True))
        return self.whole if same and draws == self.draws else self.scale(rows, draws)

    def scale(self, rows: Positions, draws: Sequence[str]) -> StandardizedOutcomes:
        means: list[NDArray[np.float64]] = []
        groups: dict[str, list[NDArray[np.float64]]] = {}
        for column, (counts, row) in enumerate(zip(self.right, rows, strict=True)):
            values = counts[:, row] / np.float64(self.columns[column].out_of)
            means.append(values.mean(axis=1))
            groups.setdefault(draws[column], []).append(values)
        return StandardizedOutcomes(
            np.stack(means, axis=1), tuple(map(standardize, groups.values()))
        )

    def shared(self, other: AlignedEntries) -> tuple[Positions, Positions]:
        """Positions in both of the outcomes that both number, column by column."""
        found = [
            np.intersect1d(a.index, b.index, assume_unique=True, return_indices=True)[1:]
            for a, b in zip(self.columns, other.columns, strict=True)
        ]
        return [mine for mine, _ in found], [its for _, its in found]


def standardize(group: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
    """Columns (N, n) over the same draws as blocks of a Scaled."""
    alike = len({values.shape for values in group}) == 1
    blocks = [np.sum(group, axis=0)] if alike else group
    return tuple(
        (block - block.mean(axis=1, keepdims=True)) / standardizer(block.shape[1])
        for block in blocks
    )


def distances(one: NDArray[np.float64], many: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean, from one vector (n,) to each of (N, n)."""
    apart = many - one
    found: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    return found


def standardizer(n: int) -> float:
    """nan for one outcome, which has no spread."""
    return math.sqrt(n * (n - 1)) if n > 1 else math.nan


class PairwiseGaps:
    """All contenders, best first; outcomes: name -> those of the columns, in order."""

    def __init__(self, outcomes: Mapping[str, Sequence[Outcomes]]) -> None:
        alike: dict[tuple[object, ...], dict[str, Sequence[Outcomes]]] = {}
        for name, held in outcomes.items():
            key = tuple((o.draws, o.out_of, o.index.tobytes()) for o in held)
            alike.setdefault(key, {})[name] = held
        self.fields = [AlignedEntries(each) for each in alike.values()]
        self.home = {name: field for field in self.fields for name in field.outcomes}

    def behind(self, leader: str, others: Sequence[str]) -> dict[str, Paired]:
        """The leader's gap over each of the others, in their order."""
        found: dict[str, Paired] = {}
        for field in self.fields:
            asked = [name for name in others if name in field.order]
            if asked:
                found |= dict(zip(asked, self.against(leader, field, asked), strict=True))
        return {name: found[name] for name in others}

    def against(
        self, leader: str, field: AlignedEntries, others: Sequence[str]
    ) -> Iterator[Paired]:
        home = self.home[leader]
        mine, its = home.shared(field)
        n = sum(rows.size for rows in mine)
        if not all(rows.size for rows in mine):
            return iter([NOTHING] * len(others))
        left, right = home.at(mine, home.draws), field.at(its, home.draws)
        rows = [field.order[name] for name in others]
        gaps, errors = left.ahead(home.order[leader], right, min(rows))
        at = [row - min(rows) for row in rows]
        found = (statistics.z_test(float(gaps[i]), float(errors[i]), n) for i in at)
        return (each if each.p == each.p else each._replace(p=1.0) for each in found)
