"""Versions of user boards: freeze the columns and the rule of a board so that it can be cited."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from fsbench.core.errors import UsageError
from fsbench.core.io import write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from leaderboard.columns import complete_columns
from leaderboard.official import BOARD_FILE, load_official_boards
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.store import Board


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
        if file.name in {shipped.name for shipped in load_official_boards()}:
            fix = "give the board another name in board.json"
            raise UsageError(f"'{file.name}' is an official board", fix=fix)
        results = [entry.results for entry in board.entries(report)]
        columns = list_columns(complete_columns(file, results), chain.from_iterable(results))
        version_fields = {
            "version": version,
            "date": datetime.now(UTC).date().isoformat(),
            "about": about or file.about,
            "columns": columns,
        }
        unfrozen = file.model_dump(exclude={"episodes", "heads"}) | version_fields
        frozen = BoardFile.model_validate(unfrozen).freeze()
        write_record(folder / BOARD_FILE, frozen)
    return frozen


def list_columns(file: BoardFile, results: Iterable[Result]) -> tuple[Column, ...]:
    """Return the columns of a board, one of each name; those of flagged results without images.

    Raises UsageError without columns, and for two of one name.
    """
    if not file.columns:
        raise UsageError("a board without results has no columns", fix="submit an entry first")
    for name, count in Counter(column.name for column in file.columns).items():
        if count > 1:
            raise UsageError(
                f"board.json names {name} with other specs or images",
                fix="keep one column of each name",
            )
    flagged = {identify_column(result) for result in results if result.flags}
    return tuple(
        column.model_copy(update={"fingerprint": None}) if column in flagged else column
        for column in file.columns
    )
