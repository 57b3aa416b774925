"""What the site shows, read from a board: every view with the results behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fsbench.results.rules import Loaded
from leaderboard.board import Board, Entry, column_of
from leaderboard.standing import View, views

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
    """A board as the site needs it; entries: name -> entry, of all tracks."""

    name: str
    official: bool
    entries: Mapping[str, Entry]
    tracks: tuple[Track, ...]


def read(folder: Path) -> Source:
    """Read, verify and rank a board. Raises ValidationFailed, UsageError."""
    board = Board.open(folder)
    entries = {entry.name: entry for entry in board.entries()}
    tracks = tuple(Track(view, cells_of(view, entries.values())) for view in views(folder))
    return Source(board.file.title, board.file.official, entries, tracks)


def cells_of(view: View, entries: Iterable[Entry]) -> Cells:
    """The results that stand in a view, under its names of the columns."""
    found: dict[str, dict[str, Loaded]] = {name: {} for name in view.contenders}
    for entry in entries:
        for cell in entry.cells:
            column = column_of(cell.result)
            spelled = {column.name, f"{column.name} #{column.digest()[:6]}"}
            for name in spelled & view.contenders.get(entry.name, {}).keys():
                found[entry.name][name] = cell
    return found
