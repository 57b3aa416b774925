"""Jobs that evaluate one backbone on one data set with one head, and extract what heads share."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import InstanceOf

from fsbench.api.evaluate import is_on_features, run_request, start_evaluations
from fsbench.api.machine import progress_reporter
from fsbench.api.options import EvaluationOptions, Machine, SweepOptions
from fsbench.api.request import EvaluationRequest, pool_of
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import DatasetRecord, Result
from fsbench.core.specs import ImageSpec, Spec
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

    @cached_property
    def on_features(self) -> Sequence[TaskId]:
        return [task for task in self.images if is_on_features(task)]


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

    @property
    def share(self) -> str:
        return "heads" if is_on_features(next(iter(self.tasks.images))) else "affine"

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
        run_request(options_of(self.backbone, options), self.tasks.request)


class FeaturesJob(Job):
    """Extract the features of one backbone that several evaluations read; tasks: one of theirs."""

    KIND: ClassVar = "features"
    share: ClassVar = "features"
    backbone: SweepBackbone
    tasks: InstanceOf[TaskGroup]
    image: ImageSpec

    @property
    def title(self) -> str:
        (task,) = self.tasks.images
        return f"features of {self.backbone.title} for {task} at {self.image}"

    def done(self, options: SweepOptions) -> bool:
        """Return False: only the loaded backbone tells, and extracting again takes no time."""
        return False

    def run(self, options: SweepOptions) -> None:
        chosen = options_of(self.backbone, options)
        (run,) = start_evaluations(chosen, self.tasks.request, progress_reporter(options.progress))
        for task in self.tasks.images:
            run.inputs(task)


def options_of(backbone: SweepBackbone, options: SweepOptions) -> EvaluationOptions:
    models = vars(backbone.models(options))
    machine = {name: getattr(options, name) for name in Machine.declared()}
    return EvaluationOptions(**models, **machine, output=options.results, yes=True)


def share_features(evaluations: Iterable[EvaluationJob]) -> Mapping[str, Sequence[FeaturesJob]]:
    """Return evaluation -> the extractions that it waits for: those that others read too."""
    readers = defaultdict[Hashable, dict[str, tuple[EvaluationJob, TaskId]]](dict)
    for job in evaluations:
        for task in job.tasks.on_features:
            image = job.tasks.specs[task].image
            readers[task.dataset, pool_of(task), image][job.key] = job, task
    needs: dict[str, list[FeaturesJob]] = defaultdict(list)
    for by_key in readers.values():
        job, task = next(iter(by_key.values()))
        image = job.tasks.specs[task].image
        tasks = replace(job.tasks, images={task: job.tasks.images[task]})
        for key in by_key if len(by_key) > 1 else ():
            needs[key].append(FeaturesJob(backbone=job.backbone, tasks=tasks, image=image))
    return needs
