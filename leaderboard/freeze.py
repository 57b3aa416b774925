"""Versions of user boards: freeze the columns and the rule of a board so that it can be cited."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fsbench.core.errors import UsageError
from fsbench.core.io import write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.results.names import safe_name
from leaderboard.columns import complete_columns
from leaderboard.official import BOARD_FILE, load_official_boards
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.store import Board, BoardEntry


def freeze_board(
    folder: Path,
    version: int = 1,
    about: str | None = None,
    report: Reporter = SILENT,
) -> BoardFile:
    """Write board.json with the columns that it names, else with all columns of its entries.

    Raises UsageError if there is no board, if it is frozen or named like an official board, and if
    its columns are missing or ambiguous; ValidationFailed for entries that break a rule.
    """
    board = Board.open(folder)
    with board.lock():
        file = board.file
        if file.version is not None:
            fix = "start a new folder for a new version"
            raise UsageError(f"{folder} is frozen already, as {file.title}", fix=fix)
        entries = board.entries(report)
        frozen = BoardFile.freeze(
            name=choose_name(board),
            version=version,
            date=datetime.now(UTC).date().isoformat(),
            about=about or file.about,
            official=file.official,
            ranking=file.ranking,
            columns=list_columns(
                complete_columns(file, [entry.results for entry in entries]), entries
            ),
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


def list_columns(file: BoardFile, entries: Sequence[BoardEntry]) -> tuple[Column, ...]:
    """Return the columns of a board, one of each name; those of flagged results without images.

    Raises UsageError without columns.
    """
    if not file.columns:
        raise UsageError("a board without results has no columns", fix="submit an entry first")
    names = [column.name for column in file.columns]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"board.json names {repeated[0]} with other specs or images",
            fix="keep one column of each name",
        )
    results = [cell.result for entry in entries for cell in entry.cells]
    flagged = {identify_column(result) for result in results if result.flags}
    return tuple(
        column.model_copy(update={"fingerprint": None}) if column in flagged else column
        for column in file.columns
    )
