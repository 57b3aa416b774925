"""Versions of user boards: freeze the columns and the rule of a board so that it can be cited."""

from datetime import UTC, datetime
from pathlib import Path

from fsbench.core.errors import UsageError
from fsbench.core.io import write_record
from fsbench.core.progress import SILENT, Reporter
from leaderboard.columns import complete_columns
from leaderboard.official import BOARD_FILE, load_official_boards
from leaderboard.record import BoardFile, identify_column
from leaderboard.store import Board


def freeze_board(folder: Path, version: int = 1, report: Reporter = SILENT) -> BoardFile:
    """Write board.json with the columns that it names, else with all columns of its entries.

    Columns of flagged results are frozen without their images. Raises UsageError if there is no
    board, if it is frozen or named like an official board, and if it has no columns;
    ValidationFailed for entries that break a rule.
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
        entries = [entry.results for entry in board.entries(report)]
        columns = complete_columns(file, entries).columns
        if not columns:
            raise UsageError("a board without results has no columns", fix="submit an entry first")
        flagged = {identify_column(r) for results in entries for r in results if r.flags}
        fields = {
            "version": version,
            "date": datetime.now(UTC).date().isoformat(),
            "columns": tuple(
                column.model_copy(update={"fingerprint": None}) if column in flagged else column
                for column in columns
            ),
            "episodes": {},
            "heads": "apart",
        }
        frozen = file.model_copy(update=fields).freeze()
        write_record(folder / BOARD_FILE, frozen)
    return frozen
