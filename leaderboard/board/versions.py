"""Versions of user boards: freeze the columns and the rule of a board so that it can be cited."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from fsbench.core.errors import UsageError
from fsbench.core.io import write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId
from fsbench.results.names import safe_name
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
    """Write board.json with the columns that it names, else with all columns of its entries.

    Raises UsageError if there is no board, if it is frozen or named like an official board, and if
    its columns are missing or ambiguous; ValidationFailed for entries that break a rule.
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
            signers=file.signers,
        )
        write_record(folder / BOARD_FILE, frozen)
    return frozen


def choose_name(board: Board) -> str:
    """Return the name in board.json, else the folder's. Raises UsageError for an official name."""
    named = (board.folder / BOARD_FILE).is_file()
    name = board.file.name if named else safe_name(board.folder.resolve().name)
    if name in {file.name for file in load_official_boards()}:
        raise UsageError(
            f"'{name}' is an official board", fix="give the board another name in board.json"
        )
    return name


def collect_columns(results: Iterable[Result]) -> list[Column]:
    """Return the columns of these results; those of flagged results name no fingerprint."""
    columns = {
        identify_column(r).model_copy(update={"fingerprint": None} if r.flags else {})
        for r in results
    }
    return sorted(columns, key=column_order)


def unify_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return one column per name, the one with a fingerprint if there is one.

    Raises UsageError without columns, and if columns of one name differ in spec or images.
    """
    columns_by_name: dict[ColumnId, list[Column]] = {}
    for column in columns:
        columns_by_name.setdefault(column.name, []).append(column)
    if not columns_by_name:
        raise UsageError("a board without results has no columns", fix="submit an entry first")
    unified = []
    for name, same_name in columns_by_name.items():
        asserted = [column for column in same_name if column.fingerprint is not None]
        specs = {column.spec_digest for column in same_name}
        if len(specs) > 1 or len(asserted) > 1:
            part = "specs" if len(specs) > 1 else "images"
            raise UsageError(
                f"entries have {name} with other {part}",
                fix="remove the entries that differ, or name one column in board.json",
            )
        unified += (asserted or same_name)[:1]
    return tuple(unified)
