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
