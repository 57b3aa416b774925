"""Rank intervals of one table of a board, or the reason why there are none."""

from pydantic import Field

from fsbench.core.errors import UsageError
from fsbench.core.specs import Frozen
from leaderboard.ranking.rank_intervals import RankInterval, bootstrap_ranks
from leaderboard.tables import BoardTable


class BoardStatistics(Frozen):
    """Rank intervals of one table of a board, as JSON; `notes` gives the reason if there are none.

    Values are fractions in [0, 1].
    """

    board: str
    track: str = Field(description="e.g. linear ibm 224px official; empty for a board without any")
    rank_intervals: tuple[RankInterval, ...] = Field((), description="bootstrap over episodes")
    notes: tuple[str, ...] = ()


def summarize_board(table: BoardTable) -> BoardStatistics:
    """Compute the rank intervals of one table."""
    try:
        intervals = bootstrap_ranks(table.ranking, table.contenders)
    except UsageError as error:
        note = f"Not computed: {error.message} ({error.fix})."
        return BoardStatistics(board=table.name, track=table.label, notes=(note,))
    return BoardStatistics(board=table.name, track=table.label, rank_intervals=intervals)
