"""Statistics of one table of a board, with the reasons why some are missing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from fsbench.core.errors import UsageError
from fsbench.core.plotting import write_figure
from fsbench.core.specs import Frozen
from leaderboard.figures import draw_ranks, name_file
from leaderboard.ranking.rank_intervals import RankInterval, bootstrap_ranks
from leaderboard.ranking.tiers import ALPHA, RankedEntry, Ranking
from leaderboard.tables import BoardTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class BoardStatistics(Frozen):
    """Statistics of one table of a board, as JSON.

    Values are fractions in [0, 1]. Without rank intervals, `notes` gives the reason.
    """

    board: str
    track: str = Field(description="e.g. linear ibm 224px official; empty for a board without any")
    columns: tuple[str, ...]
    alpha: float
    tiers: tuple[tuple[str, ...], ...] = Field(description="by the leader rule, best first")
    unranked: tuple[str, ...] = Field(description="or ranked apart, as rows of one seed")
    rank_intervals: tuple[RankInterval, ...] = Field((), description="bootstrap over episodes")
    notes: tuple[str, ...] = ()


def summarize_board(view: BoardTable) -> BoardStatistics:
    """Compute tiers and rank intervals of one table."""
    ranking, intervals, notes = view.ranking, tuple[RankInterval, ...](), tuple[str, ...]()
    try:
        intervals = bootstrap_ranks(ranking, view.contenders)
    except UsageError as error:
        notes = (f"Not computed: {error.message} ({error.fix}).",)
    return BoardStatistics(
        board=view.name,
        track=view.label,
        columns=ranking.columns,
        alpha=ALPHA,
        tiers=tuple(tuple(standing.name for standing in tier) for tier in ranking.tiers),
        unranked=tuple(standing.name for standing in ranking.entries if standing.reason),
        rank_intervals=intervals,
        notes=notes,
    )


def draw_averages(ranking: Ranking, entries: Sequence[RankedEntry]) -> "Figure | None":
    """Draw the average ranks of some of the ranked entries; None for too few to test."""
    scores = [[e.scores[column].mean for e in entries] for column in ranking.columns]
    means = np.array(scores).reshape(len(ranking.columns), len(entries))
    return draw_ranks([entry.name for entry in entries], means, ALPHA)


def write_averages(tables: Sequence[BoardTable], folder: Path) -> list[Path]:
    """Write the average ranks of all ranked entries, an SVG file for each table that has enough."""
    paths = []
    for table in tables:
        entries = [entry for tier in table.ranking.tiers for entry in tier]
        if figure := draw_averages(table.ranking, entries):
            track = f"{name_file(table.track.label)}-" if table.track else ""
            paths.append(folder / f"{track}ranks.svg")
            write_figure(figure, paths[-1])
    return paths
