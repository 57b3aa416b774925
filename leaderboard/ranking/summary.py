"""Statistics of one table of a board, with the reasons why some are missing."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import Field

from fsbench.core.errors import UsageError
from fsbench.core.specs import Frozen
from fsbench.core.tasks import ColumnId
from leaderboard.ranking.friedman import MOST_PAIRED, FriedmanTest, run_friedman
from leaderboard.ranking.rank_intervals import RankIntervals, bootstrap_ranks
from leaderboard.tables import BoardTable

T = TypeVar("T")

DEPENDENT = (
    "Columns of one data set are not independent: Friedman's test and the critical difference are "
    "optimistic there."
)
TOO_MANY = f"Nemenyi's p of every pair is left out above {MOST_PAIRED} entries."


class BoardStatistics(Frozen):
    """Statistics of one table of a board, as JSON.

    Values are fractions in [0, 1]. A statistic that the board is too small for is None, and `notes`
    gives the reason.
    """

    board: str
    track: str = Field(description="e.g. linear ibm 224px official; empty for a board without any")
    columns: tuple[str, ...]
    alpha: float
    tiers: tuple[tuple[str, ...], ...] = Field(description="by the leader rule, best first")
    unranked: tuple[str, ...]
    rank_intervals: RankIntervals | None = None
    friedman: FriedmanTest | None = None
    notes: tuple[str, ...] = ()


def summarize_board(view: BoardTable) -> BoardStatistics:
    """Compute tiers, rank intervals and average ranks of one table."""
    ranking, notes = view.ranking, list[str]()
    intervals = attempt(lambda: bootstrap_ranks(ranking, view.contenders), notes)
    tested = attempt(lambda: run_friedman(ranking), notes)
    return BoardStatistics(
        board=view.name,
        track=view.track.label if view.track else "",
        columns=ranking.columns,
        alpha=ranking.alpha,
        tiers=tuple(tuple(standing.name for standing in tier) for tier in ranking.tiers),
        unranked=tuple(standing.name for standing in ranking.unranked),
        rank_intervals=intervals,
        friedman=tested,
        notes=(*notes, *(list_caveats(tested, ranking.columns) if tested else ())),
    )


def attempt(part: Callable[[], T], notes: list[str]) -> T | None:
    """Return the result of `part`; on a UsageError, add it to the notes and return None."""
    try:
        return part()
    except UsageError as error:
        notes.append(f"Not computed: {error.message} ({error.fix}).")
        return None


def list_caveats(tested: FriedmanTest, columns: tuple[str, ...]) -> list[str]:
    """Return what a reader of the average ranks must know."""
    datasets = {ColumnId.parse(column).task.dataset for column in columns}
    notes = [DEPENDENT] if len(datasets) < len(columns) else []
    if tested.nemenyi is None:
        notes.append(TOO_MANY)
    return notes
