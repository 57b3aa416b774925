"""Rank the entries of a board: `fsbench.leaderboard`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsbench.api.machine import progress_reporter
from fsbench.core.options import expand_path
from fsbench.core.progress import Reporter
from fsbench.core.tables import ShownAsTables, TextTable
from leaderboard.render import csv, json, md, terminal
from leaderboard.render.frame import make_frame
from leaderboard.tables import BoardTable, rank_board

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from fsbench.core.plotting import Columns


@dataclass(eq=False, repr=False)
class RankedBoard(ShownAsTables):
    """A board with its entries verified and ranked.

    tracks: one ranking per protocol and input size, with scores, tiers and flags.
    """

    tracks: tuple[BoardTable, ...]

    def tables(self, seeds: bool = False) -> list[TextTable]:
        """Return the tables that people read, in percent: one column per data set.

        `complete` of each has every column. The last one, `is_extra`, has numbers that papers print
        on the same data sets. seeds: whether the seeds of a row are lines below it.
        """
        return terminal.make_board_tables(self.tracks, seeds)

    def to_markdown(self, seeds: bool = False) -> str:
        return md.render_tables(self.tables(seeds))

    def to_json(self) -> list[dict[str, Any]]:
        return [json.build_table_json(make_frame(track)) for track in self.tracks]

    def to_frame(self) -> "pandas.DataFrame":
        """Return one row per track, entry and column, and one for `overall`, the mean over columns.

        Columns: table, track, entry, tier (missing for unranked entries), overall, column, mean,
        ci95 (half-width), n, flags, seeds (their number), reason (why an entry is unranked), best
        (or not significantly worse), of comparisons with a control, which only reports have:
        control, gap, gap_ci95, p, mark, and of the cost: parameters, macs, images_per_second,
        peak_memory_bytes, machine. Accuracies are fractions.
        """
        return csv.build_frame(map(make_frame, self.tracks))

    def plot(self, control: str | None = None, columns: "Columns | None" = 2) -> "Figure":
        """Return the rows of all tables with intervals and tiers, or their gaps over a control.

        columns: of a paper, 1 for 8 cm and 2 for 17 cm; None for a screen.
        """
        from leaderboard.render.figure import draw_tables

        return draw_tables(self.tracks, control, columns)


def leaderboard(folder: str | Path, *, progress: bool | Reporter = False) -> RankedBoard:
    """Read, verify and rank the entries of a board.

    Entries of one tier are not significantly worse than the leader of the tier: paired over shared
    episodes, p adjusted for all pairs of entries, at level 0.05. Entries over fewer episodes than
    their specs are unranked, unless board.json states that as many are enough (``episodes``).

    folder: of the board; progress: whether to show it on stderr. UsageError: there is no board;
    ValidationFailed: an entry contradicts its outcomes.

    Examples
    --------
    >>> import fsbench
    >>> board = fsbench.leaderboard("board")
    >>> board.to_frame()[["track", "entry", "tier"]].drop_duplicates().values.tolist()
    [['linear ibm 32px', 'entry', 1], ['affine ibm 32px', 'entry', 1]]
    """
    return RankedBoard(rank_board(expand_path(folder), progress_reporter(progress)))
