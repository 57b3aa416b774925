"""A board of one's own as a version to be cited: its columns and its rule stay for good."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from fsbench.core.errors import UsageError
from fsbench.core.io import write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId
from fsbench.results.names import safe
from leaderboard.board.board import Board
from leaderboard.board.definition import BoardFile, Column, identify_column
from leaderboard.board.official import BOARD_FILE, load_official_boards
from leaderboard.board.tables import column_order


def freeze_board(
    folder: Path,
    version: int = 1,
    about: str | None = None,
    cache: Path | None = None,
    report: Reporter = SILENT,
) -> BoardFile:
    """Write board.json with the columns that it names, else all that its entries hold.

    Raises UsageError where there is no board, for a frozen one, for the name of an official one,
    and where the columns are none or not clear; ValidationFailed for entries that break a rule.
    """
    board = Board.existing(folder)
    with board.lock():
        file = board.file
        if file.version is not None:
            fix = "start a new folder for a new version"
            raise UsageError(f"{folder} is frozen already, as {file.title}", fix=fix)
        entries = board.entries(cache, report)
        results = [cell.result for entry in entries for cell in entry.cells]
        frozen = BoardFile.freeze(
            name=choose_name(board),
            version=version,
            date=datetime.now(UTC).date().isoformat(),
            about=about or file.about,
            official=file.official,
            ranking=file.ranking,
            columns=unify_columns(file.columns or collect_columns(results)),
        )
        write_record(folder / BOARD_FILE, frozen)
    return frozen


def choose_name(board: Board) -> str:
    """The name in board.json, else that of the folder. Raises UsageError for an official one."""
    named = (board.folder / BOARD_FILE).is_file()
    name = board.file.name if named else safe(board.folder.resolve().name)
    if name in {file.name for file in load_official_boards()}:
        raise UsageError(
            f"'{name}' is an official board", fix="give the board another name in board.json"
        )
    return name


def collect_columns(results: Iterable[Result]) -> list[Column]:
    """The columns of these results; none asserts images that only flagged results met."""
    found = set()
    for result in results:
        column = identify_column(result)
        found.add(column.model_copy(update={"fingerprint": None}) if result.flags else column)
    return sorted(found, key=column_order)


def unify_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """One column a name, the one that asserts its images.

    Raises UsageError without any, and where columns of one name are of other specs or images.
    """
    found: dict[ColumnId, list[Column]] = {}
    for column in columns:
        found.setdefault(column.name, []).append(column)
    if not found:
        raise UsageError("a board without results has no columns", fix="submit an entry first")
    return tuple(unify_column(name, alike) for name, alike in found.items())


def unify_column(name: ColumnId, columns: list[Column]) -> Column:
    asserted = [column for column in columns if column.fingerprint is not None]
    specs = {column.spec_digest for column in columns}
    if len(specs) > 1 or len(asserted) > 1:
        what = "specs" if len(specs) > 1 else "images"
        raise UsageError(
            f"the board holds {name} with other {what}",
            fix="remove all entries but those of one kind, or name one column in board.json",
        )
    return (asserted or columns)[0]
