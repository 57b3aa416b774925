"""The official boards: one file per version below boards/, which is never changed.

A board folder contains a copy of its version, so its tables stay the same when newer versions come.
The copy must equal the file of this fsbench; otherwise reading it fails and says what differs.
"""

from functools import cache
from pathlib import Path

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.io import read_record
from leaderboard.record import FROZEN, BoardFile

BOARDS = Path(__file__).resolve().parent / "boards"
BOARD_FILE = "board.json"


@cache
def load_official_boards() -> tuple[BoardFile, ...]:
    """Return all versions of all official boards, by name, the newest last."""
    files = [read_record(path, BoardFile) for path in BOARDS.glob("*.json")]
    return tuple(sorted(files, key=lambda file: (file.name, file.version or 0)))


def find_official_board(name: str) -> BoardFile:
    """Return a version by its title, e.g. cdfsl-2, or the newest of a name. Raises UnknownName."""
    boards = {file.name: file for file in load_official_boards()}
    boards |= {file.title: file for file in load_official_boards()}
    if name not in boards:
        raise UnknownName("official board", name, boards)
    return boards[name]


def read_board_file(path: Path) -> BoardFile:
    """Read board.json. Raises ValidationFailed if a version was changed, saying how."""
    file = read_record(path, BoardFile)
    if file.version is None:
        return file
    shipped = {board.title: board for board in load_official_boards()}
    if file.title not in shipped and file.name in {board.name for board in shipped.values()}:
        raise ValidationFailed(
            f"{path} is {file.title}; this fsbench knows {', '.join(shipped)}", fix="update fsbench"
        )
    original = shipped.get(file.title, file)
    changed = [field for field in FROZEN if getattr(file, field) != getattr(original, field)]
    if changed or file.frozen != file.content_digest:
        difference = ", ".join(changed) or "its digest differs"
        raise ValidationFailed(
            f"{path}: the frozen board {file.title} was changed: {difference}",
            fix="restore the file; use another name for a board with other columns or rules",
        )
    return file
