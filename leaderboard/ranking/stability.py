"""Stability of a ranking under a choice: of head, size, shots, protocol or data set.

A choice is one table of the board, hence one protocol and input size and mostly one head, with a
part of its columns: all of them, those of equal ways and shots, those of one data set, or those of
one head where the table mixes heads. It ranks every row i in the tiers of the table by

    m(i) = mean over the columns j of the part of the accuracy a(i, j)

A row is first if no other row has a larger m. The rule of tiers (tiers.py), applied to the part,
says which rows are in tier 1: those that are not significantly worse than the first one. Of the C
choices that rank a row, it is first under the share (choices under which it is first) / C.

Two choices that both rank N rows are compared by Kendall's tau-b,

    tau = (P - Q) / sqrt((n - T) (n - U))      n = N (N - 1) / 2

of P pairs of rows in equal order, Q in opposite order, T that tie under the first choice, and U
under the second one.

The share describes this board and is no probability: choices have columns in common, and each
counts once. The draw of episodes alone makes tau smaller than 1; tier 1 says what is significant.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from fsbench.core.specs import Frozen
from fsbench.core.tasks import ColumnId
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.rank_intervals import rank_means
from leaderboard.ranking.tiers import Contenders, Ranking, compare_with_leader, find_worse

ALL = "all columns"
"""The part that is a whole table."""
FEWEST_SHARED = 3
"""Rows below which two choices are not compared: two rows give 1 or -1, whatever the choices."""


class RankedChoice(Frozen):
    """A part of the columns of a table, and how it ranks the rows, best first."""

    table: str = Field(description="what all columns of the table share, e.g. linear ibm 224px")
    part: str = Field(description="`all columns`, or e.g. 5w1s, eurosat or linear")
    shape: str = Field(description="ways and shots of all columns; empty if they differ")
    ranks: dict[str, int] = Field(description="row -> rank; rows of equal mean share the better")
    tier: tuple[str, ...] = Field(description="the rows in tier 1")

    @property
    def first(self) -> list[str]:
        """The rows of rank 1, more than one where their means are equal."""
        return [row for row, rank in self.ranks.items() if rank == 1]


class RowStability(Frozen):
    """Numbers of choices: those that rank a row, and under which it is first or in tier 1."""

    name: str
    choices: int
    first: int
    alone: int = Field(description="under which all other rows are significantly worse")
    tier: int

    @property
    def share(self) -> float:
        return self.first / self.choices


class Stability(Frozen):
    """Choices of a board, the rows that are first under any of them, and taus between choices.

    taus (choices, choices): null where fewer than three rows are ranked by both choices, and where
    one of them ties all of these rows.
    """

    choices: tuple[RankedChoice, ...]
    rows: tuple[RowStability, ...]
    taus: tuple[tuple[float | None, ...], ...]

    @classmethod
    def of(cls, tables: Mapping[str, tuple[Ranking, Contenders]]) -> "Stability":
        """Return the choices of all tables by label. A table of one ranked row has none."""
        choices = tuple(c for label, table in tables.items() for c in rank_choices(label, *table))
        names = dict.fromkeys(name for choice in choices for name in choice.first)
        rows = sorted(
            (count_choices(name, choices) for name in names),
            key=lambda row: (-row.share, -row.choices, row.name),
        )
        taus = tuple(tuple(compute_tau(one, other) for other in choices) for one in choices)
        return cls(choices=choices, rows=tuple(rows), taus=taus)

    @property
    def groups(self) -> dict[str, dict[str, int]]:
        """Title -> label -> position of the choices shown together.

        Several tables are compared as a whole and, since these may have other shots, at equal ways
        and shots; then the parts of each table.
        """
        whole: dict[str, int] = {}
        shapes: dict[str, dict[str, int]] = {}
        parts: dict[str, dict[str, int]] = {}
        for position, choice in enumerate(self.choices):  # the largest part of a shape comes first
            whole.setdefault(choice.table, position)
            shapes.setdefault(choice.shape, {}).setdefault(choice.table, position)
            parts.setdefault(choice.table, {})[choice.part] = position
        groups = {f"all tables, {s}": tables for s, tables in shapes.items() if s}
        groups = {title: tables for title, tables in groups.items() if tables != whole}
        across = {"all tables": whole} | groups
        return {title: tables for title, tables in across.items() if len(tables) > 1} | parts


def rank_choices(table: str, ranking: Ranking, contenders: Contenders) -> list[RankedChoice]:
    """Return the choices of one table, without rows that are unranked or ranked apart.

    table: its label; contenders: row -> column -> outcomes.
    """
    entries = [entry for tier in ranking.tiers for entry in tier]
    choices = []
    for part, columns in split_columns(ranking.columns if len(entries) > 1 else ()).items():
        means = [np.mean([entry.scores[column].mean for column in columns]) for entry in entries]
        [ranks] = rank_means(np.array([means], np.float64)).tolist()
        order = sorted(zip(ranks, (entry.name for entry in entries), strict=True))
        names = [name for _, name in order]
        pairs = PairwiseGaps({name: [contenders[name][c] for c in columns] for name in names})
        worse = find_worse(*compare_with_leader(pairs, names))
        tier = tuple(name for name in names if name not in worse)
        ranked = {name: rank for rank, name in order}
        shapes = {ColumnId.parse(column).task.shape for column in columns}
        shape = shapes.pop() if len(shapes) == 1 else ""
        choices.append(RankedChoice(table=table, part=part, shape=shape, ranks=ranked, tier=tier))
    return choices


def split_columns(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the parts of a table by name, the whole first; of equal parts the first counts."""
    ids = [ColumnId.parse(column) for column in columns]
    facts = [(i.task.shape, i.task.dataset, i.adaptation) for i in ids]
    parts = {ALL: [*columns]} if columns else {}
    for values in zip(*facts, strict=True):
        for value in dict.fromkeys(values):
            part = [c for c, of_column in zip(columns, values, strict=True) if of_column == value]
            if part not in parts.values():
                parts[value] = part
    return parts


def count_choices(name: str, choices: Sequence[RankedChoice]) -> RowStability:
    """Return under how many of the choices that rank a row it is first and in tier 1."""
    ranked = [choice for choice in choices if name in choice.ranks]
    return RowStability(
        name=name,
        choices=len(ranked),
        first=sum(choice.ranks[name] == 1 for choice in ranked),
        alone=sum(choice.tier == (name,) for choice in ranked),
        tier=sum(name in choice.tier for choice in ranked),
    )


def compute_tau(one: RankedChoice, other: RankedChoice) -> float | None:
    """Return Kendall's tau-b between two choices over the rows that both rank, in -1..1."""
    from scipy.stats import kendalltau

    shared = [row for row in one.ranks if row in other.ranks]
    if len(shared) < FEWEST_SHARED:
        return None
    ranks = [[choice.ranks[row] for row in shared] for choice in (one, other)]
    tau = float(kendalltau(*ranks).statistic)
    return None if math.isnan(tau) else tau
