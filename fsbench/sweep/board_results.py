"""Results that a board already holds; a job whose results are on the board counts as done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fsbench.core.schema import BackboneFacts, Result
from fsbench.core.tasks import ColumnId, TaskId
from leaderboard.board.board import Board


@dataclass(frozen=True)
class BoardResult:
    """One result of an entry."""

    entry: str
    backbone: BackboneFacts
    task: TaskId
    spec: str
    images: str
    outcomes: int

    @classmethod
    def of(cls, entry: str, result: Result) -> BoardResult:
        """Read from a verified result of the entry."""
        return cls(
            entry,
            result.backbone,
            result.task,
            result.spec_digest,
            result.dataset.identity,
            result.score.n,
        )


@cache
def read_results(board: Path, folder: Path) -> tuple[BoardResult, ...]:
    """Read all results of the board, verified. Raise ValidationFailed for a damaged entry."""
    entries = Board.open(board).entries(folder) if board.is_dir() else []
    return tuple(BoardResult.of(e.name, cell.result) for e in entries for cell in e.cells)


@cache
def read_board_columns(board: Path) -> frozenset[ColumnId] | None:
    """Return the columns that a board compares; None for all."""
    file = Board.open(board).file
    return None if file.columns is None else frozenset(file.named)


def clear_cache() -> None:
    """Forget what was read; boards may have changed."""
    read_results.cache_clear()
    read_board_columns.cache_clear()
