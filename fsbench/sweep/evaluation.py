"""Job that evaluates one backbone on one data set with one head, at all requested shots."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from fsbench.sweep.backbones import Sizes, SweepBackbone
from fsbench.sweep.job import Job
from leaderboard.store import Board

ResultKey = tuple[str | None, TaskId, str, str]
"""Identity or recipe digest of a backbone, task, digest of the spec, identity of the images."""


@cache
def index_results(board: Path) -> Mapping[ResultKey, Sequence[Result]]:
    """Read all results of the board, once. Raise ValidationFailed if it is damaged."""
    results: dict[ResultKey, list[Result]] = defaultdict(list)
    for result in (r for e in Board.open(board, new=True).entries() for r in e.results):
        for backbone in (result.backbone.identity, result.backbone.recipe_digest):
            key = backbone, result.task, result.spec_digest, result.dataset.identity
            results[key].append(result)
    return results


@dataclass(frozen=True)
class TaskGroup:
    """Tasks of one data set and head, for all backbones of equal sizes; images: task -> record.

    block: the request of the sweep file's block, which may have other tasks.
    """

    block: EvaluationRequest
    images: Mapping[TaskId, DatasetRecord]
    sizes: Sizes

    @cached_property
    def request(self) -> EvaluationRequest:
        return replace(self.block, tasks=tuple(self.images))

    @cached_property
    def specs(self) -> Mapping[TaskId, Spec]:
        return {task: self.block.spec(task, *self.sizes) for task in self.images}

    @cached_property
    def digests(self) -> Mapping[TaskId, str]:
        return {task: spec.digest() for task, spec in self.specs.items()}


class EvaluationJob(Job):
    """Evaluate one backbone on the tasks of a group."""

    KIND: ClassVar = "evaluate"
    backbone: SweepBackbone
    tasks: InstanceOf[TaskGroup]

    @property
    def title(self) -> str:
        first, *others = self.tasks.images
        more = f" and {len(others)} more" if others else ""
        return f"{self.backbone.title} on {first}{more}"

    @cached_property
    def key(self) -> str:
        specs = [f"{task.dataset} {digest}" for task, digest in self.tasks.digests.items()]
        return f"{self.backbone.title}: {specs} {self.tasks.request.n_episodes}"

    def is_on_board(self, task: TaskId, options: SweepOptions) -> bool:
        """Return whether an entry has a complete result of a task."""
        images, spec = self.tasks.images[task].identity, self.tasks.digests[task]
        key = self.backbone.digest_on_board, task.in_results, spec, images
        required = 1 if task.probe else self.tasks.request.n_episodes
        return options.board is not None and any(
            result.score.n >= required and self.backbone.has_facts(result.backbone, options)
            for result in index_results(options.board).get(key, ())
        )

    def done(self, options: SweepOptions) -> bool:
        facts, title = self.backbone.facts(options), self.backbone.title
        episodes = np.arange(self.tasks.request.n_episodes)
        if facts is None:
            return False
        with suppress(ValidationFailed):  # of other images or damaged: running the job says so
            for task, images in self.tasks.images.items():
                spec = self.tasks.specs[task]
                store = ResultStore(options.results, facts, images, spec, model=title)
                if not store.complete_result(() if task.probe else episodes):
                    return False
            return True
        return False

    def run(self, options: SweepOptions) -> None:
        models = vars(self.backbone.models(options))
        machine = {name: getattr(options, name) for name in Machine.declared()}
        chosen = EvaluationOptions(**models, **machine, output=options.results, yes=True)
        run_request(chosen, self.tasks.request)
