"""What the site shows, read from a board: every view with the results behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsbench.core.progress import SILENT, Reporter
from fsbench.results.rules import Loaded
from leaderboard.board.badges import Badge, standing
from leaderboard.board.badges import read as read_badges
from leaderboard.board.board import Board, Entry
from leaderboard.board.columns import column_of
from leaderboard.board.definition import BoardFile
from leaderboard.board.standing import View, mark, of_table
from leaderboard.board.tables import tables
from leaderboard.submission.chain import build_chain

Cells = Mapping[str, Mapping[str, Loaded]]


@dataclass(frozen=True)
class Track:
    """One table of the site. cells: entry -> column of the view -> result."""

    view: View
    cells: Cells

    @property
    def names(self) -> list[str]:
        """Entries in the order of their standing."""
        return [standing.name for standing in self.view.ranking.standings]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.view.ranking.columns


@dataclass(frozen=True)
class Source:
    """A board as the site needs it.

    entries: name -> entry, of all tracks; badges: name -> the verification that counts, if any.
    """

    name: str
    official: bool
    entries: Mapping[str, Entry]
    tracks: tuple[Track, ...]
    badges: Mapping[str, Badge]


def read(folder: Path, cache: Path | None = None, report: Reporter = SILENT) -> Source:
    """Read, verify and rank a board. Raises ValidationFailed, UsageError."""
    board = Board.open(folder)
    entries = board.entries(cache, report)
    badges = {entry.name: read_badges(folder / entry.name) for entry in entries}
    return of_entries(board.file, entries, badges)


def of_entries(
    file: BoardFile, entries: Sequence[Entry], badges: Mapping[str, Sequence[Badge]]
) -> Source:
    """A board of verified entries, ranked. badges: all that lie in the entries."""
    results = [cell.result for entry in entries for cell in entry.cells]
    views = [of_table(file, entries, table) for table in tables(file, results)]
    tracks = tuple(Track(view, cells_of(view, entries)) for view in views)
    held = {each.name: standing(badges[each.name], build_chain(each.cells).end) for each in entries}
    return Source(
        name=file.title,
        official=file.official,
        entries={entry.name: entry for entry in entries},
        tracks=tracks,
        badges={name: badge for name, badge in held.items() if badge},
    )


def cells_of(view: View, entries: Iterable[Entry]) -> Cells:
    """The results that stand in a view, under its names of the columns."""
    found: dict[str, dict[str, Loaded]] = {name: {} for name in view.contenders}
    for entry in entries:
        for cell in entry.cells:
            column = column_of(cell.result)
            spelled = {str(column.name), str(mark(column))}
            for name in spelled & view.contenders.get(entry.name, {}).keys():
                found[entry.name][name] = cell
    return found
