"""Records of the statistics of a whole board, as they are written to JSON.

All values are fractions in [0, 1]. A part that the board is too small for is None, and `notes` says
why.
"""

from __future__ import annotations

from pydantic import Field

from fsbench.core.specs import Frozen


class RankInterval(Frozen):
    """The 95 % interval of an entry's overall rank; 1 is the best, ties share the better rank."""

    name: str
    tier: int
    overall: float = Field(description="unweighted mean over the columns")
    rank: int = Field(description="by the overall mean")
    low: int = Field(description="best rank of the 95 % interval")
    high: int = Field(description="worst rank of the 95 % interval")


class RankIntervals(Frozen):
    """Bootstrap over episodes and test images, resampled jointly for all entries; best first."""

    entries: tuple[RankInterval, ...]
    resamples: int
    level: float = 0.95


class Difference(Frozen):
    """Nemenyi's test of the average ranks of two entries."""

    a: str
    b: str
    p: float


class Friedman(Frozen):
    """Friedman's test of equal ranks over the columns, and the critical difference (Demsar 2006).

    cliques: sets of entries within one critical difference, in the order of their average ranks:
    the bars of the diagram. An entry may be in several sets, or in none.
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
    """A node of the tree: the most frequent winner of its cells, and a question unless a leaf."""

    winner: str
    cells: int
    wins: dict[str, int] = Field(description="cells won by each, most first")
    question: str | None = Field(None, description="e.g. 'shots <= 12' or 'data set is isic'")
    yes: Branch | None = None
    no: Branch | None = None


class WinnerTree(Frozen):
    """A shallow decision tree that predicts the winner of a cell from its facts.

    A cell is a column of the board; its winner is the entry with the highest mean.
    """

    root: Branch
    cells: int
    explained: float = Field(description="share of the cells whose winner the tree names")
    left_out: float = Field(description="the same for each cell by a tree grown without it")
    baseline: float = Field(description="share of the cells won by the most frequent winner")


class BoardStatistics(Frozen):
    """Statistics of one table of a board: columns that are averaged together."""

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
