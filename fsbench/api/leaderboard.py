"""Rank the entries of a board: `fsbench.leaderboard`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsbench.core.progress import SILENT, Reporter, console_reporter
from fsbench.core.tables import TextTable, draw_html, draw_table
from leaderboard.reports import render
from leaderboard.tables import BoardTable, rank_board

if TYPE_CHECKING:
    import pandas


@dataclass(eq=False, repr=False)
class RankedBoard:
    """A board with its entries verified and ranked, one table per protocol and input size.

    Attributes
    ----------
    tracks : tuple of BoardTable
        The ranking of each track, with scores, tiers and flags.
    """

    tracks: tuple[BoardTable, ...]

    def tables(self, seeds: bool = False) -> list[TextTable]:
        """Return the tables that people read, in percent: measured entries, then published ones.

        Measured tables have one column per data set; `complete` of each has every column. seeds:
        whether the seeds of a row are lines below it.
        """
        return render.make_overview_tables(self.tracks, seeds)

    def to_markdown(self, seeds: bool = False) -> str:
        return render.render_board(self.tracks, seeds)

    def to_json(self) -> list[dict[str, Any]]:
        return [render.build_board_json(view) for view in self.tracks]

    def to_frame(self) -> "pandas.DataFrame":
        """Return one row per measured entry and track.

        Returns
        -------
        pandas.DataFrame
            Columns: track, entry, tier (missing for unranked entries), overall, one column per
            task, source_accuracy, flags, self_reported (number of task columns without a signed
            badge), link, reason (why an entry is unranked). Accuracies are fractions.
        """
        from pandas import DataFrame

        rows = [
            {
                "track": view.track.label if view.track else None,
                "entry": standing.name,
                "tier": standing.tier,
                "overall": standing.overall,
                **{
                    column: score.mean if (score := standing.scores.get(column)) else None
                    for column in view.ranking.columns
                },
                "source_accuracy": view.sources[standing.name],
                "flags": ", ".join(view.flags[standing.name]),
                "self_reported": len(render.list_self_reported(view, standing.name)),
                "link": view.links[standing.name],
                "reason": standing.reason,
            }
            for view in self.tracks
            for standing in view.ranking.entries
        ]
        head = ["track", "entry", "tier", "overall"]
        columns = dict.fromkeys(column for view in self.tracks for column in view.ranking.columns)
        tail = ["source_accuracy", "flags", "self_reported", "link", "reason"]
        frame = DataFrame(rows, columns=[*head, *columns, *tail])
        return frame.astype({"tier": "Int64"})

    def __repr__(self) -> str:
        return "\n\n".join(
            "\n".join([table.title, *table.lead, draw_table(table)]) for table in self.tables()
        )

    def _repr_html_(self) -> str:
        """Return the tables as HTML, for notebooks; every text is escaped."""
        return "".join(map(draw_html, self.tables()))


def leaderboard(folder: str | Path, *, progress: bool | Reporter = False) -> RankedBoard:
    """Read, verify and rank the entries of a board.

    Entries of one tier are not significantly worse than the leader of the tier: paired over shared
    episodes, p adjusted for all pairs of entries, at level 0.05. Entries over fewer episodes than
    their specs are unranked, unless board.json states that as many are enough (``episodes``).

    Parameters
    ----------
    folder : str or Path
        The folder of the board.
    progress : bool or Reporter
        Show progress on stderr.

    Returns
    -------
    RankedBoard
        One ranking per protocol and input size; ``.to_frame()`` gives a pandas table.

    Raises
    ------
    UsageError
        If there is no board.
    ValidationFailed
        If an entry contradicts its outcomes.

    Examples
    --------
    >>> import fsbench
    >>> board = fsbench.leaderboard("board")
    >>> board.to_frame()[["track", "entry", "tier"]].values.tolist()
    [['linear ibm 32px', 'entry', 1], ['affine ibm 32px', 'entry', 1]]
    """
    if isinstance(progress, bool):
        progress = console_reporter() if progress else SILENT
    return RankedBoard(rank_board(Path(folder), progress))
