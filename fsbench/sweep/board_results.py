"""Results that a board already holds; a job whose results are on the board counts as done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import BackboneFacts, Result
from fsbench.core.tasks import ColumnId, TaskId
from fsbench.sweep.place import Workplace
from leaderboard.board.board import Board

if TYPE_CHECKING:
    from fsbench.sweep.evaluation import EvaluationJob, SweepBackbone


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
def read_columns(board: Path) -> frozenset[ColumnId] | None:
    """Return the columns that a board compares; None for all."""
    file = Board.open(board).file
    return None if file.columns is None else frozenset(file.named)


def find_entry(job: EvaluationJob, task: TaskId, place: Workplace) -> str | None:
    """Return the entry with a complete result of this task of the job."""
    if place.board is None:
        return None
    spec = job.spec(task).digest()
    images = job.images[job.parsed.index(task)].identity
    required = 1 if task.probe else job.request.n_episodes
    for cell in read_results(place.board, place.cache):
        same = (cell.task, cell.spec, cell.images) == (task.in_results, spec, images)
        if same and cell.outcomes >= required and job.backbone.is_(cell.backbone):
            return cell.entry
    return None


def is_on_board(job: EvaluationJob, place: Workplace) -> bool:
    """Return whether the board holds all results of the job."""
    return all(find_entry(job, task, place) for task in job.parsed)


def is_entry_of(entry: str, backbone: SweepBackbone, place: Workplace) -> bool:
    """Return whether the board has this entry, and it is of this backbone.

    Raises ValidationFailed where its results are of other weights than those of this sweep, which a
    recipe gives on another kind of machine: an entry holds one network.
    """
    if place.board is None:
        return False
    cells = read_results(place.board, place.cache)
    mine = [c.backbone for c in cells if c.entry == entry and backbone.is_(c.backbone)]
    now = backbone.facts(place)
    others = {facts.weights_hash for facts in mine} - {now.weights_hash if now else ""}
    if others:
        raise ValidationFailed(
            f"the entry {entry} on {place.board} holds results of other weights"
            f" ({', '.join(sorted(other[:12] for other in others))}) of the same recipe",
            fix="put those weights in the place of the run and sweep again, or delete the entry"
            " to have all of its results made anew",
        )
    return bool(mine)


def column_name(job: EvaluationJob, task: TaskId) -> ColumnId:
    """Return the board column of a task of the job."""
    return ColumnId.of(task, job.spec(task))


def clear_cache() -> None:
    """Forget what was read; boards may have changed."""
    read_results.cache_clear()
    read_columns.cache_clear()
