"""Job that evaluates one backbone on one data set with one head, at all requested shots."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import InstanceOf

from fsbench.api.evaluate import run_request
from fsbench.api.options import EvaluationOptions, Machine, SweepOptions
from fsbench.api.request import EvaluationRequest
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import DatasetRecord, Result
from fsbench.core.specs import Spec
from fsbench.core.tasks import TaskId
from fsbench.results.store import ResultStore
from fsbench.sweep.backbones import SweepBackbone
from fsbench.sweep.job import Job
from leaderboard.store import Board


@cache
def read_results(board: Path) -> tuple[tuple[str, Result], ...]:
    """Read all results of the board with their entries. Raise ValidationFailed if damaged."""
    entries = Board.open(board, new=True).entries()
    return tuple((entry.name, result) for entry in entries for result in entry.results)


class EvaluationJob(Job):
    """Evaluate one backbone on tasks of one data set and head; images: task -> record.

    block: the request of the sweep file's block, which may have other tasks.
    """

    KIND: ClassVar = "evaluate"
    backbone: SweepBackbone
    images: Mapping[TaskId, DatasetRecord]
    block: InstanceOf[EvaluationRequest]

    @property
    def title(self) -> str:
        first, *others = self.images
        more = f" and {len(others)} more" if others else ""
        return f"{self.backbone.title} on {first}{more}"

    @cached_property
    def key(self) -> str:
        specs = [f"{task.dataset} {self.spec(task).digest()}" for task in self.images]
        return f"{self.backbone.title}: {specs} {self.request.n_episodes}"

    @property
    def request(self) -> EvaluationRequest:
        return replace(self.block, tasks=tuple(self.images))

    def spec(self, task: TaskId) -> Spec:
        return self.request.spec(task, *self.backbone.sizes)

    def is_on_board(self, task: TaskId, options: SweepOptions) -> bool:
        """Return whether an entry has a complete result of a task."""
        expected = task.in_results, self.spec(task).digest(), self.images[task].identity
        required = 1 if task.probe else self.request.n_episodes
        return options.board is not None and any(
            (result.task, result.spec_digest, result.dataset.identity) == expected
            and result.score.n >= required
            and self.backbone.has_facts(result.backbone, options)
            for _, result in read_results(options.board)
        )

    def done(self, options: SweepOptions) -> bool:
        facts, n, title = self.backbone.facts(options), self.request.n_episodes, self.backbone.title
        if facts is None:
            return False
        with suppress(ValidationFailed):  # of other images or damaged: running the job says so
            for task, images in self.images.items():
                store = ResultStore(options.results, facts, images, self.spec(task), model=title)
                if not store.complete_result(() if task.probe else np.arange(n)):
                    return False
            return True
        return False

    def run(self, options: SweepOptions) -> None:
        models = vars(self.backbone.models(options))
        machine = {name: getattr(options, name) for name in Machine.declared()}
        chosen = EvaluationOptions(**models, **machine, output=options.results, yes=True)
        run_request(chosen, self.request)
