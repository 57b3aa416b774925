"""Jobs that evaluate one backbone on one data set with one head, and extract what heads share."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import ClassVar

from pydantic import InstanceOf

from fsbench.api.evaluate import TargetSets, is_on_features, run_request, start_evaluations
from fsbench.api.machine import progress_reporter
from fsbench.api.options import EvaluationOptions, SweepOptions
from fsbench.api.request import EvaluationRequest, pool_of
from fsbench.core.errors import ValidationFailed
from fsbench.core.progress import Reporter
from fsbench.core.schema import BackboneFacts, DatasetRecord
from fsbench.core.specs import Spec
from fsbench.core.tasks import TaskId
from fsbench.results.entry import ENTRY_FILE
from fsbench.results.verification import read_verified
from fsbench.sweep.backbones import Sizes, SweepBackbone, load_options, name_entry
from fsbench.sweep.job import Job

ResultKey = tuple[TaskId, str, str]
"""Task, digest of its spec, identity of its images."""


@cache
def index_results(folder: Path) -> Mapping[ResultKey, Sequence[tuple[int, BackboneFacts]]]:
    """Read the episodes and backbones of all results at or below a folder, once.

    Raise ValidationFailed if they are damaged.
    """
    index = defaultdict[ResultKey, list[tuple[int, BackboneFacts]]](list)
    for path in folder.rglob(ENTRY_FILE):
        for result in (one.result for one in read_verified(path.parent).loaded):
            key = result.task, result.spec_digest, result.dataset.identity
            if "shard" not in result.flags:
                index[key].append((result.score.n, result.backbone))
    return index


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

    def is_complete(self, task: TaskId, folder: Path, options: SweepOptions) -> bool:
        """Return whether a folder has a complete result of a task. Raise as `index_results`."""
        key = task.in_results, self.tasks.digests[task], self.tasks.images[task].identity
        required = 1 if task.probe else self.tasks.request.n_episodes
        return any(
            n >= required and self.backbone.has_facts(facts, options)
            for n, facts in index_results(folder).get(key, ())
        )

    def done(self, options: SweepOptions) -> bool:
        """Return whether the results of a trained backbone, or its entry, have all outcomes."""
        is_trained = self.backbone.done(options)
        folders = [options.results / self.backbone.title] if is_trained else []
        folders += [options.board / name_entry(self.backbone)] if options.board else []
        with suppress(ValidationFailed):  # damaged: running the job says so
            return all(
                any(self.is_complete(task, folder, options) for folder in folders)
                for task in self.tasks.images
            )
        return False

    def run(self, options: SweepOptions) -> None:
        chosen = load_options(self.backbone, options)
        run_request(EvaluationOptions(**chosen, output=options.results), self.tasks.request)

    def extractions(self) -> Iterator["FeaturesJob"]:
        """Yield the jobs whose features these tasks read; equal ones have one key."""
        for task, record in self.tasks.images.items() if self.share == "heads" else ():
            request = replace(self.tasks.request, tasks=(task,))
            tasks = replace(self.tasks, request=request, images={task: record})
            yield FeaturesJob(backbone=self.backbone, tasks=tasks)


class FeaturesJob(Job):
    """Extract the features of one backbone for heads; tasks: one that reads them."""

    KIND: ClassVar = "features"
    share: str = "features"
    backbone: SweepBackbone
    tasks: InstanceOf[TaskGroup]

    @property
    def title(self) -> str:
        (task,) = self.tasks.images
        image = self.tasks.specs[task].image
        return f"features of {self.backbone.title} for {task.dataset} ({pool_of(task)}) at {image}"

    @cached_property
    def key(self) -> str:
        (task,) = self.tasks.images
        return f"{self.title} {self.tasks.specs[task].image.canonical()}"  # numbers in full

    def done(self, options: SweepOptions) -> bool:
        """Return False: only the loaded backbone tells, and extracting again takes no time."""
        return False

    def run(self, options: SweepOptions) -> None:
        chosen = EvaluationOptions(**load_options(self.backbone, options), output=options.results)
        (run,) = start_evaluations(chosen, self.tasks.request, progress_reporter(options.progress))
        run.inputs(*self.tasks.images)
