"""Job that evaluates one backbone on one data set with one head, at all requested shots."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import InstanceOf

from fsbench.api.evaluate import run_request
from fsbench.api.options import SweepOptions
from fsbench.api.request import EvaluationRequest
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import DatasetRecord, Result
from fsbench.core.specs import Spec
from fsbench.core.tasks import ColumnId, TaskId
from fsbench.results.store import ResultStore
from fsbench.sweep.backbones import SweepBackbone
from fsbench.sweep.file import JobKind
from fsbench.sweep.job import Job
from leaderboard.store import Board


@cache
def read_results(board: Path) -> tuple[tuple[str, Result], ...]:
    """Read all results of the board with their entries. Raise ValidationFailed if damaged."""
    entries = Board.open(board, new=True).entries()
    return tuple((entry.name, result) for entry in entries for result in entry.results)


@cache
def read_board_columns(board: Path) -> frozenset[ColumnId] | None:
    """Return the columns that a board takes; None for all."""
    file = Board.open(board, new=True).file
    return None if file.has_extra else frozenset(file.named)


def clear_cache() -> None:
    """Forget what was read; boards may have changed."""
    read_results.cache_clear()
    read_board_columns.cache_clear()


class EvaluationJob(Job):
    """Evaluate one backbone on tasks of one data set and head; images: task -> record.

    block: the request of the sweep file's block, which may have other tasks; entry: name of the
    board entry that the results are for, if any.
    """

    KIND: ClassVar[JobKind] = "evaluate"
    backbone: SweepBackbone
    images: Mapping[TaskId, DatasetRecord]
    block: InstanceOf[EvaluationRequest]
    entry: str | None = None

    @property
    def title(self) -> str:
        first, *others = self.images
        more = f" and {len(others)} more" if others else ""
        return f"{self.backbone.label} on {first}{more}"

    @property
    def settings(self) -> Mapping[str, Any]:
        specs = [self.spec(task).digest() for task in self.images]
        images = [record.identity for record in self.images.values()]
        counts = {
            "episodes": self.request.n_episodes,
            "limited": self.request.options.limit is not None,
        }
        backbone = self.backbone.identity
        return {"backbone": backbone, "specs": specs, "images": images, **counts}

    @property
    def request(self) -> EvaluationRequest:
        return replace(self.block, tasks=tuple(self.images))

    def spec(self, task: TaskId) -> Spec:
        return self.request.spec(task, self.backbone.native, self.backbone.evaluation_size)

    def column(self, task: TaskId) -> ColumnId:
        return ColumnId.of(task, self.spec(task))

    def find_entry(self, task: TaskId, place: SweepOptions) -> str | None:
        """Return the entry with a complete result of a task."""
        if place.board is None:
            return None
        spec = self.spec(task).digest()
        images = self.images[task].identity
        required = 1 if task.probe else self.request.n_episodes
        for entry, result in read_results(place.board):
            stored = result.task, result.spec_digest, result.dataset.identity
            same = stored == (task.in_results, spec, images)
            if same and result.score.n >= required and self.backbone.has_facts(result.backbone):
                return entry
        return None

    def done(self, place: SweepOptions) -> bool:
        facts = self.backbone.facts(place)
        if facts is None:
            return False
        for task, images in self.images.items():
            label, spec = self.backbone.label, self.spec(task)
            cell = ResultStore(place.results, facts, images, spec, model=label)
            episodes = () if task.probe else np.arange(self.request.n_episodes)
            try:
                if not cell.complete_result(episodes):
                    return False
            except ValidationFailed:  # of other images or damaged: running the job says so
                return False
        return True

    def run(self, place: SweepOptions) -> None:
        if self.entry:
            is_entry_of(self.entry, self.backbone, place)  # before hours of work, not after
        run_request(
            self.backbone.models(place),
            self.request,
            output=place.results,
            machine=place,
            yes=True,
        )


def is_entry_of(entry: str, backbone: SweepBackbone, place: SweepOptions) -> bool:
    """Return whether the board has this entry, and it is of this backbone.

    Raises ValidationFailed where its results are of other weights than those of this sweep, which a
    recipe gives on another kind of machine: an entry holds one network.
    """
    if place.board is None:
        return False
    of_entry = [result.backbone for name, result in read_results(place.board) if name == entry]
    mine = [facts for facts in of_entry if backbone.has_facts(facts)]
    now = backbone.facts(place)
    others = {facts.identity for facts in mine} - {now.identity if now else ""}
    if others:
        raise ValidationFailed(
            f"the entry {entry} on {place.board} holds results of other weights"
            f" ({', '.join(sorted(other[:12] for other in others))}) of the same recipe",
            fix="put those weights in the place of the run and sweep again, or delete the entry"
            " to have all of its results made anew",
        )
    return bool(mine)
