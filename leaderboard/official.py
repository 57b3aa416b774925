"""The official boards: one file per version below boards/, which is never changed.

A board folder contains a copy of its version, so its tables stay the same when newer versions come.
The copy must equal the file of this fsbench; otherwise reading it fails and says what differs.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.io import read_record
from fsbench.core.tasks import Track
from leaderboard.record import RULE, BoardFile, Column, find_differing_keys

BOARDS = Path(__file__).resolve().parent / "boards"
BOARD_FILE = "board.json"
SHOWN = 4
"""Maximum number of columns that a message names."""
OFFICIAL_HEADER = ("board", "date", "track", "columns", "data sets", "tasks")
OFFICIAL_NOTE = (
    "Every track has two tables: official data, where an entry needs all columns and no flag, and "
    "`subset`, which takes the same columns with flags. fsbench leaderboard init "
    "--board DIR --official NAME starts a board."
)


@cache
def load_official_boards() -> tuple[BoardFile, ...]:
    """Return all versions of all official boards, by name, the newest last."""
    files = [read_record(path, BoardFile) for path in BOARDS.glob("*.json")]
    return tuple(sorted(files, key=lambda file: (file.name, file.version or 0)))


def find_official_board(name: str, version: int | None = None) -> BoardFile:
    """Return a version of an official board, by default the newest. Raises UnknownName."""
    titles = {file.title: file for file in load_official_boards()}
    newest = {file.name: file for file in load_official_boards()}
    boards = titles if version is not None else {**titles, **newest}
    title = name if version is None else f"{name}-{version}"
    if title not in boards:
        raise UnknownName("official board", title, boards)
    return boards[title]


def read_board_file(path: Path) -> BoardFile:
    """Read board.json. Raises ValidationFailed if a frozen field was changed, saying which."""
    file = read_record(path, BoardFile)
    if file.frozen is None:
        return file
    shipped = {board.title: board for board in load_official_boards()}
    if file.title not in shipped and file.name in {board.name for board in shipped.values()}:
        raise ValidationFailed(
            f"{path} is {file.title}; this fsbench knows {', '.join(shipped)}", fix="update fsbench"
        )
    changes = describe_changes(file, shipped.get(file.title, file)) or file.changed()
    if changes:
        raise ValidationFailed(
            f"{path}: the frozen board {file.title} was changed: {'; '.join(changes)}",
            fix="restore the file; use another name for a board with other columns or rules",
        )
    return file


def describe_changes(file: BoardFile, shipped: BoardFile) -> list[str]:
    """Return how a copy of an official board differs from the file of this fsbench."""
    changes = []
    for field in find_differing_keys(file.digests(), shipped.digests()):
        values = getattr(file, field), getattr(shipped, field)
        if field == "columns":
            changes += describe_column_changes(*(columns or () for columns in values))
        else:
            changes.append(f"{field} is {values[0]!r}, not {values[1]!r}")
    return changes


def describe_column_changes(copy: Sequence[Column], shipped: Sequence[Column]) -> list[str]:
    """Return the missing, added and changed columns by name."""
    copied, expected = ({str(c.name): c for c in columns} for columns in (copy, shipped))
    names_by_kind = {
        "missing columns": [name for name in expected if name not in copied],
        "added columns": [name for name in copied if name not in expected],
        "changed columns": [n for n in copied if n in expected and copied[n] != expected[n]],
    }
    changes = [
        f"{kind}: {', '.join(names[:SHOWN])}"
        + f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)
        for kind, names in names_by_kind.items()
        if names
    ]
    return changes or ["columns in another order"]


def list_official_tracks() -> list[tuple[str, ...]]:
    """Return a row of OFFICIAL_HEADER for every track of every version."""
    rows: list[tuple[str, ...]] = []
    for file in load_official_boards():
        for track, columns in group_by_track(file).items():
            label = track.label.removesuffix(" official")
            datasets = ", ".join(dict.fromkeys(c.name.task.dataset for c in columns))
            shapes = ", ".join(dict.fromkeys(c.name.task.shape for c in columns))
            rows.append((file.title, file.date or "-", label, str(len(columns)), datasets, shapes))
    return rows


def group_by_track(file: BoardFile) -> dict[Track, list[Column]]:
    """Return the columns of each track on official data."""
    tracks: dict[Track, list[Column]] = {}
    for column in file.columns or ():
        tracks.setdefault(Track.of(column.name, "official"), []).append(column)
    return tracks


def describe_official_boards() -> list[dict[str, Any]]:
    """Return every version with its rule in words and its tracks."""
    return [
        {
            **file.model_dump(mode="json"),
            "title": file.title,
            "rule": RULE,
            "tracks": [
                {
                    **track.model_copy(update={"data": data}).model_dump(mode="json"),
                    "columns": [str(column.name) for column in columns],
                }
                for data in ("official", "subset")
                for track, columns in group_by_track(file).items()
            ],
        }
        for file in load_official_boards()
    ]
