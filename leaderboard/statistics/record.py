"""What is said of a whole board beside its tiers, as one frozen record that becomes JSON.

Fractions lie in [0, 1]; percent appears only where people read. A part that a board is too small
for is None, and `notes` says why.
"""

from __future__ import annotations

from pydantic import Field

from fsbench.specs import Frozen


class RankInterval(Frozen):
    """Where an entry may stand overall, 1 being the best; ties share the better rank."""

    name: str
    tier: int
    overall: float = Field(description="unweighted mean over the columns")
    rank: int = Field(description="by the overall mean")
    low: int = Field(description="best rank of the 95 % interval")
    high: int = Field(description="worst rank of the 95 % interval")


class RankIntervals(Frozen):
    """Bootstrap over episodes and test images, drawn jointly for all entries; best entry first."""

    entries: tuple[RankInterval, ...]
    resamples: int
    level: float = 0.95


class Difference(Frozen):
    """Two entries by Nemenyi's test on their average ranks."""

    a: str
    b: str
    p: float


class Friedman(Frozen):
    """Friedman's test of equal ranks over the columns, and the critical difference (Demsar 2006).

    cliques: entries in the order of their average ranks, in sets within one critical difference:
    the bars of the diagram. An entry may be in several, or in none.
    """

    chi2: float
    p: float
    columns: int
    average_ranks: dict[str, float] = Field(description="best first; 1 is first in every column")
    critical_difference: float
    alpha: float
    cliques: tuple[tuple[str, ...], ...]
    nemenyi: tuple[Difference, ...] | None = Field(
        None, description="every pair; null on a board of more than 50 entries"
    )


class Branch(Frozen):
    """A node of the tree: the winner among its cells, and a question where it asks one."""

    winner: str
    cells: int
    wins: dict[str, int] = Field(description="cells won by each, most first")
    question: str | None = Field(None, description="e.g. 'shots <= 12' or 'data set is isic'")
    yes: Branch | None = None
    no: Branch | None = None


class WinnerTree(Frozen):
    """Which entry wins where: a shallow decision tree over the facts of the cells.

    A cell is a column of the board; its winner has the highest mean there.
    """

    root: Branch
    cells: int
    explained: float = Field(description="share of the cells whose winner the tree names")
    left_out: float = Field(description="the same for each cell by a tree grown without it")
    baseline: float = Field(description="share of the cells won by the most frequent winner")


class BoardStatistics(Frozen):
    """One track of a board: columns that are averaged together."""

    board: str
    track: str = Field(description="e.g. linear ibm 224px official; empty for a board without any")
    columns: tuple[str, ...]
    alpha: float
    tiers: tuple[tuple[str, ...], ...] = Field(description="by the leader rule, best first")
    unranked: tuple[str, ...]
    rank_intervals: RankIntervals | None = None
    friedman: Friedman | None = None
    winners: WinnerTree | None = None
    notes: tuple[str, ...] = ()
