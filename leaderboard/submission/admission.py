"""What a board asks of a candidate: its columns, its data, and one copy of the official images."""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape

from fsbench.core.io import read_record
from fsbench.core.schema import Result
from fsbench.results.rules import Loaded, Problem
from leaderboard.board.board import Board
from leaderboard.board.columns import column_of
from leaderboard.board.tables import place
from leaderboard.submission.submission import Candidate

SHOWN = 3
"""Names that a message lists."""


def official(candidate: Candidate, board: Board) -> Iterator[Problem]:
    """Official boards take complete results on official data only, but for the subset tracks of
    those with a version."""
    if board.file.official and board.file.version is None:
        for cell in candidate.cells:
            if cell.result.flags:
                fix = "evaluate all episodes on the official data, or choose another board"
                yield cell.problem("flagged", ", ".join(cell.result.flags), "no flag", fix)


def board_columns(candidate: Candidate, board: Board) -> Iterator[Problem]:
    """Results that bear the name of a board column have its spec and its images."""
    for cell in candidate.cells:
        expected = board.file.named.get(cell.result.column)
        if expected is not None and place(board.file, cell.result) is None:
            wrong = "images" if expected.same_cell(cell.result) else "spec"
            fix = "evaluate with the board's settings and data"
            found = column_of(cell.result).canonical()
            yield cell.problem("column", f"other {wrong}: {found}", expected.canonical(), fix)


def no_column(candidate: Candidate, board: Board) -> Iterator[Problem]:
    """At least one result belongs to a column of the board; the others are left out."""
    if candidate.left_out and not candidate.cells:
        names = ", ".join(str(column.name) for column in (board.file.columns or ())[:SHOWN])
        found = f"{', '.join(candidate.left_out[:SHOWN])}: no column of {board.file.title}"
        fix = "evaluate columns of the board (fsbench leaderboard boards), or choose another board"
        yield Problem("column", candidate.name, found[:300], f"columns such as {names}", fix)


def one_copy(candidate: Candidate, board: Board) -> Iterator[Problem]:
    """Where the hash of the official images is not published, the first entry on a board settles
    it: episodes of entries that met other images could not be paired."""
    if board.file.version is None:
        return
    for cell in firsts(candidate):
        held = copy_of(board, cell, candidate.name)
        if held is not None and held.dataset.identity != cell.result.dataset.identity:
            fix = "evaluate the same copy of the data: compare with fsbench data verify"
            expected = f"{held.dataset.identity}, as of the entries on the board"
            yield cell.problem("images", cell.result.dataset.identity, expected, fix)


def firsts(candidate: Candidate) -> list[Loaded]:
    """A result without flags for each data set, pool and group rule; the others are alike."""
    found: dict[tuple[str, str, bool], Loaded] = {}
    for cell in candidate.cells:
        data = cell.result.dataset
        if not cell.result.flags:
            found.setdefault((data.name, data.pool, data.groups is None), cell)
    return list(found.values())


def copy_of(board: Board, cell: Loaded, name: str) -> Result | None:
    """The same cell, without flags, of the first other entry on the board that has it; the task is
    the one of a column of the board."""
    dataset = cell.result.task.dataset
    pattern = f"*/*/{dataset}/{escape(cell.path.name)}"
    others = (e for e in sorted(board.folder.glob("[!.]*")) if e.name.casefold() != name.casefold())
    for path in (path for entry in others for path in sorted(entry.glob(pattern))):
        result = read_record(path, Result)
        if not result.flags:
            return result
    return None
