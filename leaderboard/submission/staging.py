"""How an entry comes to lie on a board: written beside it, moved into place by two renames.

A process killed between the two leaves the entry that it was replacing in a hidden folder; the next
one that adds to the board puts it back, so a command that did not end has changed nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

PREFIX = ".staging-"
NEW, OLD = "new", "old"
"""Folders of the entry that comes and of the one that gives way, each under its name."""


def place_entry(board: Path, name: str, held: str | None, write: Callable[[Path], None]) -> Path:
    """Write an entry, then move it to BOARD/name; the one `held` under this name goes.

    Nothing but the two renames is seen by readers. The caller holds the board's lock.
    """
    staging = Path(mkdtemp(prefix=PREFIX, dir=board))
    try:
        write(staging / NEW / name)
        if held is not None:
            (staging / OLD).mkdir()
            (board / held).rename(staging / OLD / held)
        (staging / NEW / name).rename(board / name)
    finally:
        settle_staging(board, staging)
    return board / name


def recover_entries(board: Path) -> None:
    """Settle what killed processes left. The caller holds the board's lock."""
    for staging in list_leftovers(board):
        settle_staging(board, staging)


def list_leftovers(board: Path) -> list[Path]:
    """Hidden folders of a process that writes now, or of killed ones."""
    return sorted(path for path in board.glob(f"{PREFIX}*") if path.is_dir())


def settle_staging(board: Path, staging: Path) -> None:
    """Put back the entry that was to be replaced, unless one took its place, and clear up."""
    held = {path.name.casefold() for path in board.glob("[!.]*")}
    for entry in (staging / OLD).glob("[!.]*"):
        if entry.name.casefold() not in held:
            entry.rename(board / entry.name)
    shutil.rmtree(staging, ignore_errors=True)
