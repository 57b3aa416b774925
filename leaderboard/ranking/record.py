"""Records of the statistics of a whole board, as they are written to JSON.

All values are fractions in [0, 1]. A part that the board is too small for is None, and `notes` says
why.
"""

from __future__ import annotations

from pydantic import Field

from fsbench.core.specs import Frozen


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
