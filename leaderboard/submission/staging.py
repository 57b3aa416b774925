"""Atomic replacement of an entry folder: written in a staging folder, moved by two renames.

A process killed between the renames leaves the old entry in a hidden folder; the next process that
adds to the board puts it back. So a command that did not finish has changed nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

PREFIX = ".staging-"
NEW, OLD = "new", "old"
"""Folders of the new and of the replaced entry, each under its name."""


def place_entry(
    board: Path, name: str, replaced: str | None, write: Callable[[Path], None]
) -> Path:
    """Write an entry, then move it to BOARD/name and remove the entry `replaced`.

    Readers see only the two renames. The caller holds the board's lock.
    """
    staging = Path(mkdtemp(prefix=PREFIX, dir=board))
    try:
        write(staging / NEW / name)
        if replaced is not None:
            (staging / OLD).mkdir()
            (board / replaced).rename(staging / OLD / replaced)
        (staging / NEW / name).rename(board / name)
    finally:
        settle_staging(board, staging)
    return board / name


def recover_entries(board: Path) -> None:
    """Restore the entries that killed processes left. The caller holds the board's lock."""
    for staging in list_leftovers(board):
        settle_staging(board, staging)


def list_leftovers(board: Path) -> list[Path]:
    """Return the staging folders of a writing process or of killed processes."""
    return sorted(path for path in board.glob(f"{PREFIX}*") if path.is_dir())


def settle_staging(board: Path, staging: Path) -> None:
    """Put the old entry back unless a new one took its place, then remove the staging folder."""
    present = {path.name.casefold() for path in board.glob("[!.]*")}
    for entry in (staging / OLD).glob("[!.]*"):
        if entry.name.casefold() not in present:
            entry.rename(board / entry.name)
    shutil.rmtree(staging, ignore_errors=True)
