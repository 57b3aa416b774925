"""What the site shows, read from a board: every view with the results behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsbench.core.progress import SILENT, Reporter
from fsbench.results.rules import Loaded
from leaderboard.board.badges import Badge, read_badges, select_badge
from leaderboard.board.board import Board, BoardEntry
from leaderboard.board.definition import BoardFile, identify_column
from leaderboard.board.tables import BoardTable, mark, rank_table, split_by_track
from leaderboard.submission.chain import build_chain

ResultsByEntry = Mapping[str, Mapping[str, Loaded]]


@dataclass(frozen=True)
class SiteTable:
    """One table of the site. cells: entry -> column of the view -> result."""

    view: BoardTable
    cells: ResultsByEntry

    @property
    def names(self) -> list[str]:
        """Entries in the order of their standing."""
        return [standing.name for standing in self.view.ranking.entries]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.view.ranking.columns


@dataclass(frozen=True)
class SiteBoard:
    """A board as the site needs it.

    entries: name -> entry, of all tracks; badges: name -> the verification that counts, if any.
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
    """A board of verified entries, ranked. badges: all that lie in the entries."""
    results = [cell.result for entry in entries for cell in entry.cells]
    views = [rank_table(file, entries, table) for table in split_by_track(file, results)]
    tracks = tuple(SiteTable(view, results_by_entry(view, entries)) for view in views)
    held = {
        each.name: select_badge(badges[each.name], build_chain(each.cells).end) for each in entries
    }
    return SiteBoard(
        name=file.title,
        official=file.official,
        entries={entry.name: entry for entry in entries},
        tracks=tracks,
        badges={name: badge for name, badge in held.items() if badge},
    )


def results_by_entry(view: BoardTable, entries: Iterable[BoardEntry]) -> ResultsByEntry:
    """The results that stand in a view, under its names of the columns."""
    found: dict[str, dict[str, Loaded]] = {name: {} for name in view.contenders}
    for entry in entries:
        for cell in entry.cells:
            column = identify_column(cell.result)
            spelled = {str(column.name), str(mark(column))}
            for name in spelled & view.contenders.get(entry.name, {}).keys():
                found[entry.name][name] = cell
    return found
