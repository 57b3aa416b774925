"""The board as the site needs it: every table with the results that it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsbench.core.progress import SILENT, Reporter
from fsbench.results.verification import Loaded
from leaderboard.board.badges import Badge, read_badges, select_badge
from leaderboard.board.board import Board, BoardEntry
from leaderboard.board.definition import BoardFile, identify_column
from leaderboard.board.tables import BoardTable, mark_column, rank_table, split_by_track
from leaderboard.submission.chain import build_chain

ResultsByEntry = Mapping[str, Mapping[str, Loaded]]


@dataclass(frozen=True)
class SiteTable:
    """One table of the site. cells: entry -> column of the table -> result."""

    view: BoardTable
    cells: ResultsByEntry

    @property
    def names(self) -> list[str]:
        """The entries in order of rank."""
        return [entry.name for entry in self.view.ranking.entries]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.view.ranking.columns


@dataclass(frozen=True)
class SiteBoard:
    """A verified and ranked board.

    entries: name -> entry, of all tracks; badges: name -> the badge that counts, if there is one.
    """

    name: str
    official: bool
    entries: Mapping[str, BoardEntry]
    tracks: tuple[SiteTable, ...]
    badges: Mapping[str, Badge]


def read_board(folder: Path, cache: Path | None = None, report: Reporter = SILENT) -> SiteBoard:
    """Read, verify and rank a board. Raises ValidationFailed, UsageError."""
    board = Board.open(folder)
    entries = board.entries(cache, report)
    badges = {entry.name: read_badges(folder / entry.name) for entry in entries}
    return arrange_board(board.file, entries, badges)


def arrange_board(
    file: BoardFile, entries: Sequence[BoardEntry], badges: Mapping[str, Sequence[Badge]]
) -> SiteBoard:
    """Rank a board of verified entries. badges: all badges of each entry."""
    results = [loaded.result for entry in entries for loaded in entry.cells]
    views = [rank_table(file, entries, table) for table in split_by_track(file, results)]
    tracks = tuple(SiteTable(view, group_results(view, entries)) for view in views)
    current = {
        entry.name: select_badge(badges[entry.name], build_chain(entry.cells).end)
        for entry in entries
    }
    return SiteBoard(
        name=file.title,
        official=file.official,
        entries={entry.name: entry for entry in entries},
        tracks=tracks,
        badges={name: badge for name, badge in current.items() if badge},
    )


def group_results(view: BoardTable, entries: Iterable[BoardEntry]) -> ResultsByEntry:
    """Return the results of a table by entry and by the table's column labels."""
    results: dict[str, dict[str, Loaded]] = {name: {} for name in view.contenders}
    for entry in entries:
        for loaded in entry.cells:
            column = identify_column(loaded.result)
            labels = {str(column.name), str(mark_column(column))}
            for label in labels & view.contenders.get(entry.name, {}).keys():
                results[entry.name][label] = loaded
    return results
