"""The official boards: one file a version below boards/, which is never changed again.

A board folder holds a copy of its version, so it renders alike when newer versions are there. The
copy has to be the file that ships: whoever reads another one is told where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.results.names import safe
from leaderboard.board.columns import Column
from leaderboard.board.definition import BoardFile, unequal

BOARDS = Path(__file__).resolve().parent.parent / "boards"
BOARD_FILE = "board.json"
SHOWN = 4
"""Columns that a message names before it counts the rest."""


@cache
def official() -> tuple[BoardFile, ...]:
    """All versions of all official boards, by name, the newest last. Raises ValidationFailed."""
    files = [read_record(path, BoardFile) for path in BOARDS.glob("*.json")]
    return tuple(sorted(files, key=lambda file: (file.name, file.version or 0)))


def find(name: str, version: int | None = None) -> BoardFile:
    """A version of an official board, the newest if none is given. Raises UnknownName."""
    titles = {file.title: file for file in official()}
    newest = {file.name: file for file in official()}
    known = titles if version is not None else {**titles, **newest}
    wanted = name if version is None else f"{name}-{version}"
    if wanted not in known:
        raise UnknownName("official board", wanted, known)
    return known[wanted]


def init(folder: Path, name: str | None = None, version: int | None = None) -> BoardFile:
    """Write board.json: of an official board, or without a name of a free one named as the folder.

    Raises UsageError where a board or, for an official one, any entry already lies, UnknownName.
    """
    if version is not None and name is None:
        raise UsageError("a version of no board", fix="give --official NAME too")
    if (folder / BOARD_FILE).exists():
        raise UsageError(f"{folder} already has a {BOARD_FILE}", fix="give a new folder")
    if name and any(folder.glob("[!.]*/entry.json")):
        raise UsageError(
            f"{folder} already holds entries, which were not checked for an official board",
            fix="give a new folder and submit them to it",
        )
    file = BoardFile(name=safe(folder.resolve().name)) if name is None else find(name, version)
    write_record(folder / BOARD_FILE, file)
    return file


def read(path: Path) -> BoardFile:
    """A board.json, of a version as it was frozen. Raises ValidationFailed saying what differs."""
    file = read_record(path, BoardFile)
    if file.frozen is None:
        return file
    shipped = {each.title: each for each in official()}
    if file.title not in shipped and file.name in {each.name for each in official()}:
        raise ValidationFailed(
            f"{path} is {file.title}; this fsbench knows {', '.join(shipped)}", fix="update fsbench"
        )
    found = differences(file, shipped.get(file.title, file)) or file.changed()
    if found:
        raise ValidationFailed(
            f"{path}: the frozen board {file.title} was changed: {'; '.join(found)}",
            fix="restore the file; other columns or rules are another board, with another name",
        )
    return file


def differences(file: BoardFile, shipped: BoardFile) -> list[str]:
    """What stands in a copy in place of what ships."""
    changed = unequal(file.digests(), shipped.digests())
    plain = [
        f"{field} is {getattr(file, field)!r}, not {getattr(shipped, field)!r}"
        for field in changed
        if field != "columns"
    ]
    moved = column_differences(file.columns or (), shipped.columns or ())
    return plain + (moved if "columns" in changed else [])


def column_differences(held: Sequence[Column], shipped: Sequence[Column]) -> list[str]:
    """Columns that are missing, added or other ones, by name."""
    ours, theirs = ({str(c.name): c for c in columns} for columns in (held, shipped))
    kinds = {
        "missing columns": [name for name in theirs if name not in ours],
        "added columns": [name for name in ours if name not in theirs],
        "changed columns": [n for n in ours if n in theirs and ours[n] != theirs[n]],
    }
    found = [f"{kind}: {listed(names)}" for kind, names in kinds.items() if names]
    return found or ["columns in another order"]


def listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
