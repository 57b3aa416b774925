"""Evaluate backbones: data checked first, features once per data set, then cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench import data
from fsbench.api.estimate import adaptation, block_timer, extraction, refuse_long
from fsbench.api.machine import Clock, Machine
from fsbench.api.models import Models as Models
from fsbench.api.request import Request, pool_of
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureStore, check_input_size
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetRecord, Flag, Result
from fsbench.core.specs import (
    TRACKS,
    EpisodeSpec,
    EpisodicSpec,
    ImageSpec,
    KnnSpec,
    Pool,
    ProbeSpec,
    Spec,
)
from fsbench.core.tasks import Task
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.splits import Indices, split_of
from fsbench.data.views import View
from fsbench.results import Cell, ResultStore
from protocols import EPISODIC, needs_features
from protocols.base import Inputs
from protocols.heads.halving import in_halves
from protocols.probes import knn, linear


class Targets:
    """The target data sets of a request, loaded and checked before any work starts."""

    def __init__(
        self, request: Request, roots: data.DataRoots, cache: Path, report: Reporter
    ) -> None:
        self.cache, self.report = cache, report
        wanted = dict.fromkeys((task.dataset, pool_of(task)) for task in request.tasks)
        self.datasets = {key: data.load_target(key[0], roots, key[1]) for key in wanted}
        for task in request.tasks:
            if not task.probe:
                self.sampler(task, request.episode_spec(task))
        for dataset in self.datasets.values():
            for note in dataset.notes:
                report.log(f"{dataset.name}: {note}")
        self._records: dict[tuple[str, Pool], DatasetRecord] = {}

    def of(self, task: Task) -> TargetDataset:
        return self.datasets[task.dataset, pool_of(task)]

    def sampler(self, task: Task, spec: EpisodeSpec) -> EpisodeSampler:
        """Raises DataError with class, count and need when a class is too small, or for the
        disjoint track of a data set without groups."""
        dataset = self.of(task)
        return EpisodeSampler.of(spec, dataset)

    def record(self, task: Task) -> DatasetRecord:
        """What a result of the task says of its images; the disjoint track adds their groups."""
        key = (task.dataset, pool_of(task))
        if key not in self._records:
            self._records[key] = data.record(self.datasets[key], self.cache, self.report)
        if task.protocol is None or TRACKS[task.protocol] == "classic":
            return self._records[key]
        groups = self.of(task).require_groups().hash
        return self._records[key].model_copy(update={"groups": groups})


@dataclass(frozen=True, eq=False)
class Bench:
    """One backbone under one request."""

    backbone: Backbone
    name: str | None
    request: Request
    targets: Targets
    features: FeatureStore
    results: ResultStore
    clock: Clock
    report: Reporter

    def evaluate(self, task: Task) -> Result:
        """The cell of one task: read if complete, else computed and written."""
        spec, cell = self.spec(task), self.cell(task)
        if self.request.overwrite:
            cell.clear()
        if isinstance(spec, EpisodicSpec):
            return self.in_halves(cell, task, spec)
        return self.probe(cell, task, spec)

    def spec(self, task: Task) -> Spec:
        return self.request.spec(task, self.backbone.facts.input_size)

    def cell(self, task: Task) -> Cell:
        record, spec = self.targets.record(task), self.spec(task)
        return self.results.cell(self.backbone.facts, record, task.id, spec, self.name)

    def refuse_long(self, yes: bool) -> None:
        """Raises UsageError when what is left to do would take over an hour, unless `yes`."""
        device = self.clock.device
        parts = extraction(self.uncached(), self.backbone, device)
        parts += adaptation(self.unfinished(), self.backbone, device)
        refuse_long(parts, self.backbone.facts.ref, yes, self.report)

    def uncached(self) -> dict[int, int]:
        """Input size (px) -> images whose features must be extracted first."""
        images: dict[int, int] = {}
        wanted = {(t.dataset, pool_of(t)): t for t in self.request.tasks if on_features(t)}
        for task in wanted.values():
            image = self.spec(task).image
            dataset, fingerprint = self.targets.of(task), self.targets.record(task).fingerprint
            if not self.features.holds(self.backbone, image, fingerprint):
                images[image.input_size] = images.get(image.input_size, 0) + len(dataset)
        for task in self.request.tasks:
            spec = self.spec(task)
            if isinstance(spec, ProbeSpec) and spec.n_views and not self.cell(task).complete():
                n, size = len(split_of(self.targets.of(task))[0]), spec.image.input_size
                images[size] = images.get(size, 0) + n * spec.n_views
        return images

    def unfinished(self) -> dict[EpisodicSpec, int]:
        """Blocks left to compute of the protocols that can tell how long one takes, by spec."""
        left: dict[EpisodicSpec, int] = {}
        for task in self.request.tasks:
            spec = self.spec(task)
            if isinstance(spec, EpisodicSpec) and block_timer(spec):
                left[spec] = left.get(spec, 0) + len(self.missing(self.cell(task), spec))
        return left

    def missing(self, cell: Cell, spec: EpisodicSpec) -> list[int]:
        blocks = self.blocks(spec)
        if self.request.overwrite:
            return list(blocks)
        return [block for block, episodes in blocks.items() if not cell.holds(list(episodes))]

    def blocks(self, spec: EpisodicSpec) -> dict[int, range]:
        """Blocks wanted -> the wanted episodes in them."""
        protocol = EPISODIC.load(spec.adaptation)
        size = protocol.block_size(spec, self.backbone.facts.feature_dim)
        return self.request.block_episodes(size)

    def inputs(self, task: Task, image: ImageSpec) -> Inputs:
        device = self.clock.device
        found = inputs_of(self.backbone, task, image, self.targets, self.features, device)
        return replace(found, halvings=self.clock.halvings)

    def probe(self, cell: Cell, task: Task, spec: ProbeSpec | KnnSpec) -> Result:
        if cell.complete():
            return cell.read()
        inputs = self.inputs(task, spec.image)
        train, test = split_of(inputs.dataset)
        if isinstance(spec, KnnSpec):
            found = knn.evaluate(inputs, spec, train, test)
            return cell.write_probe(found, provenance=self.clock.provenance())
        views = self.views(task, spec, train) if spec.n_views else None
        records = linear.evaluate(inputs, spec, train, test, self.report, views)
        return cell.write_probe(records, flags=self.flags, provenance=self.clock.provenance())

    def views(self, task: Task, spec: ProbeSpec, train: Indices) -> linear.Views:
        """Epoch -> features of a random view of all training images: cached, or made on the way."""
        part, fingerprint = self.targets.of(task).take(train), self.targets.record(task).fingerprint

        def features(epoch: int) -> NDArray[np.float32]:
            view = View(spec.seed, epoch % spec.n_views)
            if spec.augmentation == "views":
                return self.features.get(self.backbone, part, spec.image, fingerprint, view)
            rows = self.features.rows(self.backbone, part, spec.image, view=view)
            return np.concatenate([block for _, block in rows])

        return features

    def in_halves(self, cell: Cell, task: Task, spec: EpisodicSpec) -> Result:
        """The cell, with as few halvings as an earlier result and memory allow, none mixed."""

        def attempt(halvings: int) -> Result:
            clock = replace(self.clock, halvings=halvings)
            store = ResultStore(self.results.root, clock.environment, self.report)
            bench = replace(self, clock=clock, results=store)
            return bench.episodes(bench.cell(task), task, spec)

        return in_halves(attempt, self.report.log, cell.halvings)

    def episodes(self, cell: Cell, task: Task, spec: EpisodicSpec) -> Result:
        protocol = EPISODIC.load(spec.adaptation)
        blocks = self.blocks(spec)
        wanted = np.array([i for episodes in blocks.values() for i in episodes], dtype=np.int64)
        if cell.complete(wanted):
            return cell.read()
        missing = self.missing(cell, spec)
        inputs = self.inputs(task, spec.image)
        done = wanted.size - sum(len(blocks[block]) for block in missing)
        what = f"{cell.model} {task.id}"
        with self.report.task(what, wanted.size, "episodes", done) as advance:
            for block in missing:
                cell.write_block(block, protocol.evaluate_block(inputs, spec, block))
                advance(len(blocks[block]))
        return cell.finish(wanted, flags=self.flags, provenance=self.clock.provenance())

    @property
    def flags(self) -> tuple[Flag, ...]:
        return ("limited",) if self.request.limited else ()


def on_features(task: Task) -> bool:
    """Whether the task works on features of whole data sets; else on images, an episode each."""
    return task.adaptation is None or needs_features(EPISODIC.load(task.adaptation))


def inputs_of(
    backbone: Backbone,
    task: Task,
    image: ImageSpec,
    targets: Targets,
    features: FeatureStore,
    device: str,
) -> Inputs:
    """What a protocol is given for a task: the features of all images, where it works on any."""
    dataset = targets.of(task)
    if not on_features(task):
        check_input_size(backbone, image.input_size, device)
        none = np.empty((len(dataset), 0), np.float32)
        return Inputs(backbone, dataset, none, device)
    found = features.get(backbone, dataset, image, targets.record(task).fingerprint)
    return Inputs(backbone, dataset, found, device)


def evaluate(
    models: Models,
    request: Request,
    *,
    roots: Sequence[str] = (),
    output: Path = Path("results"),
    machine: Machine | None = None,
    yes: bool = False,
    report: Reporter = SILENT,
) -> list[Result]:
    """Evaluate every model on every task; cells already complete in `output` are read, not run.

    roots: as --data. Data sets are loaded and checked before any work. Raises DataError,
    CheckpointError, UsageError; without `yes` also when the work would take over an hour.
    """
    results = []
    for bench in benches(models, request, roots, output, machine, report):
        bench.refuse_long(yes)
        results += [bench.evaluate(task) for task in request.tasks]
    return results


def benches(
    models: Models,
    request: Request,
    roots: Sequence[str],
    output: Path,
    machine: Machine | None,
    report: Reporter,
) -> Iterator[Bench]:
    """One bench a model, loaded when its turn comes. Raises as `evaluate` does."""
    machine = machine or Machine()
    clock = machine.start()
    targets = Targets(request, data.DataRoots.parse(roots), machine.cache, report)
    store = ResultStore(output, clock.environment, report)
    features = feature_store(machine, clock.device, report)
    for i in range(len(models.refs)):
        backbone = models.load(i, clock.device, report)
        name = models.names[i] if models.names else None
        yield Bench(backbone, name, request, targets, features, store, clock, report)


def feature_store(machine: Machine, device: str, report: Reporter) -> FeatureStore:
    """The features that this machine keeps."""
    return FeatureStore(
        machine.cache,
        batch_size=machine.batch_size,
        workers=machine.workers,
        device=device,
        report=report,
    )
