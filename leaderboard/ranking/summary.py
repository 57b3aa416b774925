"""Statistics of one table of a board, with the reasons why some are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fsbench.core.errors import UsageError
from leaderboard.board.standing import View
from leaderboard.ranking.friedman import MOST_PAIRED, friedman
from leaderboard.ranking.ranks import rank_intervals
from leaderboard.ranking.record import BoardStatistics, Friedman
from leaderboard.ranking.winners import winner_tree

T = TypeVar("T")

DEPENDENT = (
    "Columns of one data set are not independent: Friedman's test and the critical difference are "
    "optimistic there."
)
TOO_MANY = f"Nemenyi's p of every pair is left out above {MOST_PAIRED} entries."


def statistics(view: View) -> BoardStatistics:
    """Compute tiers, rank intervals, average ranks and the tree of winners of one table."""
    ranking, notes = view.ranking, list[str]()
    intervals = attempt(lambda: rank_intervals(ranking, view.contenders), notes)
    tested = attempt(lambda: friedman(ranking), notes)
    return BoardStatistics(
        board=view.name,
        track=view.track.label if view.track else "",
        columns=ranking.columns,
        alpha=ranking.alpha,
        tiers=tuple(tuple(standing.name for standing in tier) for tier in ranking.tiers),
        unranked=tuple(standing.name for standing in ranking.unranked),
        rank_intervals=intervals,
        friedman=tested,
        winners=attempt(lambda: winner_tree(ranking), notes),
        notes=(*notes, *(caveats(tested, ranking.columns) if tested else ())),
    )


def attempt(part: Callable[[], T], notes: list[str]) -> T | None:
    """Return the result of `part`; on a UsageError, add it to the notes and return None."""
    try:
        return part()
    except UsageError as error:
        notes.append(f"Not computed: {error.message} ({error.fix}).")
        return None


def caveats(tested: Friedman, columns: tuple[str, ...]) -> list[str]:
    """Return what a reader of the average ranks must know."""
    datasets = {column.partition(":")[0] for column in columns}
    notes = [DEPENDENT] if len(datasets) < len(columns) else []
    if tested.nemenyi is None:
        notes.append(TOO_MANY)
    return notes
