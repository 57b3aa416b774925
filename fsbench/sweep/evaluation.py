"""Jobs that evaluate one backbone on one data set with one head, and extract what heads share."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import InstanceOf

from fsbench.api.evaluate import TargetSets, is_on_features, run_request, start_evaluations
from fsbench.api.machine import progress_reporter
from fsbench.api.options import EvaluationOptions, SweepOptions
from fsbench.api.request import EvaluationRequest, pool_of
from fsbench.core.errors import ValidationFailed
from fsbench.core.progress import Reporter
from fsbench.core.schema import BackboneFacts, DatasetRecord, Result
from fsbench.core.specs import Spec
from fsbench.core.tasks import TaskId
from fsbench.results.store import ResultStore
from fsbench.sweep.backbones import Sizes, SweepBackbone, load_options
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
    """Tasks of one data set and head, for all backbones of equal sizes.

    request: of these tasks alone; images, specs, digests: of each; share: of a job (`Job`).
    """

    request: EvaluationRequest
    images: Mapping[TaskId, DatasetRecord]
    specs: Mapping[TaskId, Spec]
    digests: Mapping[TaskId, str]
    share: str


def group_tasks(
    block: EvaluationRequest, all_sizes: Iterable[Sizes], options: SweepOptions, report: Reporter
) -> Mapping[Sizes, Sequence[TaskGroup]]:
    """Return the tasks of a block by data set and head, for backbones of these sizes."""
    targets, groups = TargetSets(block, options, report), defaultdict[Sizes, list[TaskGroup]](list)
    parts = defaultdict[Hashable, dict[TaskId, DatasetRecord]](dict)
    for task in block.tasks:
        parts[task.dataset, task.head][task] = targets.record(task)
    for images, sizes in product(parts.values(), all_sizes):
        request = replace(block, tasks=tuple(images))
        specs = {task: block.spec(task, *sizes) for task in images}
        digests = {task: spec.digest() for task, spec in specs.items()}
        share = "heads" if all(map(is_on_features, images)) else "affine"
        groups[sizes].append(TaskGroup(request, images, specs, digests, share))
    return groups


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
        """Return whether the results folder has all outcomes; damaged ones are made anew."""
        with suppress(ValidationFailed):  # of other images or damaged: running the job says so
            facts = self.backbone.facts(options)
            return facts is not None and all(
                self.is_stored(task, facts, options) for task in self.tasks.images
            )
        return False

    def is_stored(self, task: TaskId, facts: BackboneFacts, options: SweepOptions) -> bool:
        """Return whether a result of a task is complete. Raise ValidationFailed as ResultStore."""
        about = facts, self.tasks.images[task], self.tasks.specs[task]
        store = ResultStore(options.results, *about, model=self.backbone.title)
        episodes = () if task.probe else np.arange(self.tasks.request.n_episodes)
        return store.complete_result(episodes) is not None

    def run(self, options: SweepOptions) -> None:
        chosen = load_options(self.backbone, options)
        run_request(EvaluationOptions(**chosen, output=options.results), self.tasks.request)


class FeaturesJob(Job):
    """Extract the features of one backbone that several evaluations read; tasks: one of theirs."""

    KIND: ClassVar = "features"
    share: str = "features"
    backbone: SweepBackbone
    tasks: InstanceOf[TaskGroup]

    @property
    def title(self) -> str:
        (task,) = self.tasks.images
        return f"features of {self.backbone.title} for {task} at {self.tasks.specs[task].image}"

    def done(self, options: SweepOptions) -> bool:
        """Return False: only the loaded backbone tells, and extracting again takes no time."""
        return False

    def run(self, options: SweepOptions) -> None:
        chosen = EvaluationOptions(**load_options(self.backbone, options), output=options.results)
        (run,) = start_evaluations(chosen, self.tasks.request, progress_reporter(options.progress))
        for task in self.tasks.images:
            run.inputs(task)


def share_features(evaluations: Iterable[EvaluationJob]) -> Mapping[str, Sequence[FeaturesJob]]:
    """Return evaluation -> the extractions that it waits for: those that others read too."""
    readers = defaultdict[Hashable, dict[str, tuple[EvaluationJob, TaskId]]](dict)
    for job in evaluations:
        for task, spec in job.tasks.specs.items() if job.share == "heads" else ():
            readers[task.dataset, pool_of(task), spec.image][job.key] = job, task
    needs: dict[str, list[FeaturesJob]] = defaultdict(list)
    for by_key in readers.values():
        job, task = next(iter(by_key.values()))
        request, images = replace(job.tasks.request, tasks=(task,)), {task: job.tasks.images[task]}
        tasks = replace(job.tasks, request=request, images=images)
        for key in by_key if len(by_key) > 1 else ():
            needs[key].append(FeaturesJob(backbone=job.backbone, tasks=tasks))
    return needs
