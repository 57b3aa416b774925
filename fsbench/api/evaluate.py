"""Evaluate backbones: data checked first, features once per data set, then cell by cell."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench import data
from fsbench.api.estimate import adaptation, block_timer, extraction, refuse_long
from fsbench.api.machine import Machine, RunContext, cache_folder
from fsbench.api.request import (
    EvaluationRequest,
    parse_head_settings,
    parse_input_size,
    parse_probe_settings,
    parse_shard,
    parse_tasks,
    pool_of,
)
from fsbench.api.request import Models as Models
from fsbench.api.results import Results
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureStore, check_input_size
from fsbench.core.progress import SILENT, Reporter, console_reporter
from fsbench.core.schema import DatasetRecord, Flag, Result
from fsbench.core.specs import (
    SAMPLING,
    EpisodeSpec,
    EpisodicSpec,
    ImageSpec,
    KnnSpec,
    Pool,
    ProbeSpec,
    Spec,
)
from fsbench.core.tasks import Kind, Options, TaskId
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.splits import Indices, split_of
from fsbench.data.views import View
from fsbench.results import Cell, ResultStore
from protocols import EPISODIC, needs_features
from protocols.base import Inputs
from protocols.heads.execution import retry_with_halvings
from protocols.probes import knn, linear


class TargetSets:
    """The target data sets of a request, loaded and checked before any work starts."""

    def __init__(
        self, request: EvaluationRequest, roots: data.DataRoots, cache: Path, report: Reporter
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

    def of(self, task: TaskId) -> TargetDataset:
        return self.datasets[task.dataset, pool_of(task)]

    def sampler(self, task: TaskId, spec: EpisodeSpec) -> EpisodeSampler:
        """Raises DataError with class, count and need when a class is too small, or for the
        disjoint track of a data set without groups."""
        dataset = self.of(task)
        return EpisodeSampler.of(spec, dataset)

    def record(self, task: TaskId) -> DatasetRecord:
        """What a result of the task says of its images; the disjoint track adds their groups."""
        key = (task.dataset, pool_of(task))
        if key not in self._records:
            self._records[key] = data.record(self.datasets[key], self.cache, self.report)
        if task.protocol is None or SAMPLING[task.protocol].track == "classic":
            return self._records[key]
        groups = self.of(task).require_groups().hash
        return self._records[key].model_copy(update={"groups": groups})


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One backbone under one request."""

    backbone: Backbone
    name: str | None
    request: EvaluationRequest
    targets: TargetSets
    features: FeatureStore
    results: ResultStore
    clock: RunContext
    report: Reporter

    def evaluate(self, task: TaskId) -> Result:
        """The cell of one task: read if complete, else computed and written."""
        spec, cell = self.spec(task), self.cell(task)
        if self.request.overwrite:
            cell.clear()
        if isinstance(spec, EpisodicSpec):
            return self.in_halves(cell, task, spec)
        return self.probe(cell, task, spec)

    def spec(self, task: TaskId) -> Spec:
        return self.request.spec(task, self.backbone.facts.input_size)

    def cell(self, task: TaskId) -> Cell:
        record, spec = self.targets.record(task), self.spec(task)
        return self.results.cell(self.backbone.facts, record, spec, self.name)

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

    def inputs(self, task: TaskId, image: ImageSpec) -> Inputs:
        device = self.clock.device
        found = inputs_of(self.backbone, task, image, self.targets, self.features, device)
        return replace(found, halvings=self.clock.halvings)

    def probe(self, cell: Cell, task: TaskId, spec: ProbeSpec | KnnSpec) -> Result:
        if cell.complete():
            return cell.read()
        inputs = self.inputs(task, spec.image)
        train, test = split_of(inputs.dataset)
        if isinstance(spec, KnnSpec):
            found = knn.evaluate_knn_probe(inputs, spec, train, test)
            return cell.write_probe(found, provenance=self.clock.provenance())
        views = self.views(task, spec, train) if spec.n_views else None
        records = linear.evaluate_linear_probe(inputs, spec, train, test, self.report, views)
        return cell.write_probe(records, flags=self.flags, provenance=self.clock.provenance())

    def views(self, task: TaskId, spec: ProbeSpec, train: Indices) -> linear.ViewFeatures:
        """Epoch -> features of a random view of all training images: cached, or made on the way."""
        part, fingerprint = self.targets.of(task).take(train), self.targets.record(task).fingerprint

        def features(epoch: int) -> NDArray[np.float32]:
            view = View(spec.seed, epoch % spec.n_views)
            if spec.augmentation == "views":
                return self.features.get(self.backbone, part, spec.image, fingerprint, view)
            rows = self.features.rows(self.backbone, part, spec.image, view=view)
            return np.concatenate([block for _, block in rows])

        return features

    def in_halves(self, cell: Cell, task: TaskId, spec: EpisodicSpec) -> Result:
        """The cell, with as few halvings as an earlier result and memory allow, none mixed."""

        def attempt(halvings: int) -> Result:
            clock = replace(self.clock, halvings=halvings)
            store = ResultStore(self.results.root, clock.environment, self.report)
            bench = replace(self, clock=clock, results=store)
            return bench.episodes(bench.cell(task), task, spec)

        return retry_with_halvings(attempt, self.report.log, cell.halvings)

    def episodes(self, cell: Cell, task: TaskId, spec: EpisodicSpec) -> Result:
        protocol = EPISODIC.load(spec.adaptation)
        blocks = self.blocks(spec)
        wanted = np.array([i for episodes in blocks.values() for i in episodes], dtype=np.int64)
        if cell.complete(wanted):
            return cell.read()
        missing = self.missing(cell, spec)
        inputs = self.inputs(task, spec.image)
        done = wanted.size - sum(len(blocks[block]) for block in missing)
        what = f"{cell.model} {task.in_results}"
        with self.report.task(what, wanted.size, "episodes", done) as advance:
            for block in missing:
                cell.write_block(block, protocol.evaluate_block(inputs, spec, block))
                advance(len(blocks[block]))
        return cell.finish(wanted, flags=self.flags, provenance=self.clock.provenance())

    @property
    def flags(self) -> tuple[Flag, ...]:
        return ("limited",) if self.request.limited else ()


def on_features(task: TaskId) -> bool:
    """Whether the task works on features of whole data sets; else on images, an episode each."""
    return task.head is None or needs_features(EPISODIC.load(task.head))


def inputs_of(
    backbone: Backbone,
    task: TaskId,
    image: ImageSpec,
    targets: TargetSets,
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
    model: str | Backbone | Sequence[str | Backbone],
    tasks: str | TaskId | Sequence[str | TaskId],
    *,
    data: str | Sequence[str] = (),
    episodes: int = 600,
    input_size: int | str = 224,
    shots: Sequence[int] | None = None,
    way: int | None = None,
    heads: Sequence[str] | None = None,
    protocol: str | None = None,
    kinds: Sequence[Kind] = ("probe", "episodic"),
    settings: Sequence[str] = (),
    bn_mode: str = "eval",
    seed: int = 0,
    limit: int | None = None,
    shard: str | None = None,
    arch: str | None = None,
    random_init: int | None = None,
    name: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    batch_size: int | None = None,
    workers: int = 2,
    cache: str | Path | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    yes: bool = False,
    progress: bool | Reporter = True,
) -> Results:
    """Evaluate frozen backbones on few-shot tasks and probes.

    Parameters
    ----------
    model : str, Backbone, or a list of them
        Reference (`timm/NAME`, `hf-hub:ORG/NAME@REV`, `torchvision/NAME`, `run:DIR`, a checkpoint
        file with `arch`, `py:PKG.MOD:FUNCTION`), or `fsbench.Backbone.from_module(...)`.
    tasks : str, TaskId, or a list of them
        A data set (`eurosat`: probe and episodes), a full id (`eurosat:5w1s/linear@ibm`,
        `eurosat:probe`, `folder:DIR:5w1s`) or a group (`cdfsl`).
    data : str or sequence of str
        Folder with the data sets, or NAME=DIR for one; default FSBENCH_DATA.
    episodes : int
        Episodes per task; official boards require 600.
    input_size : int or "native"
        Input resolution in pixels; native: the one that each model was trained at.
    shots, way, heads, protocol
        What ids leave out: default 1, 5, 20 and 50 shots, 5 ways, head `linear`, protocol `ibm`.
    kinds : sequence of {"probe", "episodic"}
        What a data set without a part after it stands for.
    settings : sequence of str
        Settings of heads and probes, e.g. `["ridge.lam=10", "probe.views=8"]`.
    bn_mode : {"eval", "train"}
        BatchNorm statistics while the head `affine` is tuned: the source's, or each batch's.
    seed : int
        Seed for sampling episodes; 0 is official.
    limit : int, optional
        Quick test: at most so many episodes (probes: epochs); results are marked `limited`.
    shard : str, optional
        `i/n`: only this part of the episodes, to be merged later.
    arch, random_init, name
        Of model references: architecture of a checkpoint file; seed of random weights in place of
        the pretrained ones; name in results, for a single model.
    device, threads, batch_size, workers, cache
        Where and how work runs; recorded in results.
    output : str or Path, optional
        Results folder: complete results in it are read, not computed. Without it results live in a
        temporary folder until `Results.save` copies them.
    overwrite : bool
        Compute results in `output` again and replace them.
    yes : bool
        Start work that is estimated to take over an hour.
    progress : bool or Reporter
        Whether to write progress to stderr.

    Returns
    -------
    Results
        One `Result` per model and task; `.to_frame()`, `.save(DIR)`.

    Raises
    ------
    UsageError
        For names, tasks or options that do not fit, and for over an hour of work without `yes`.
    DataError
        If images are missing, or classes are too small.
    CheckpointError
        If weights do not fit the architecture.

    Examples
    --------
    >>> import torch, fsbench
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    >>> backbone = fsbench.Backbone.from_module(net, name="tiny", input_size=32, pool="avg")
    >>> results = fsbench.evaluate(
    ...     backbone, ["toy_tiles:5w1s", "toy_photo:5w5s/ridge"], input_size=32, episodes=20
    ... )
    >>> results.to_frame()[["dataset", "n_shot", "head"]].values.tolist()
    [['toy_tiles', 1, 'linear'], ['toy_photo', 5, 'ridge']]
    """
    options = Options(tuple(kinds), shots, way, heads, protocol)
    request = EvaluationRequest(
        tasks=parse_tasks([tasks] if isinstance(tasks, str | TaskId) else tasks, options),
        input_size=parse_input_size(str(input_size)),
        episodes=episodes,
        limit=limit,
        seed=seed,
        shard=parse_shard(shard),
        overwrite=overwrite,
        bn_mode=bn_mode,
        settings=parse_head_settings(settings),
        probing=parse_probe_settings(settings),
    )
    machine = Machine(
        device, threads, workers, batch_size, cache_folder(Path(cache) if cache else None)
    )
    # Without a folder to keep them in, results live as long as the object that is returned.
    temporary = tempfile.TemporaryDirectory(prefix="fsbench-") if output is None else None
    results, paths = run_request(
        Models.of(model, arch, random_init, name),
        request,
        roots=[data] if isinstance(data, str) else list(data),
        output=Path(temporary.name if temporary else output or "results"),
        machine=machine,
        yes=yes,
        report=progress
        if not isinstance(progress, bool)
        else console_reporter()
        if progress
        else SILENT,
    )
    return Results(results, paths, temporary)


def run_request(
    models: Models,
    request: EvaluationRequest,
    *,
    roots: Sequence[str] = (),
    output: Path = Path("results"),
    machine: Machine | None = None,
    yes: bool = False,
    report: Reporter = SILENT,
) -> tuple[list[Result], list[Path]]:
    """Evaluate every model on every task; return the results and their files.

    Results that are complete in `output` are read, not computed. roots: as --data. Data sets are
    loaded and checked before any work. Raises DataError, CheckpointError, UsageError; without
    `yes` also when the work would take over an hour.
    """
    results, paths = [], []
    for bench in start_evaluations(models, request, roots, output, machine, report):
        bench.refuse_long(yes)
        for task in request.tasks:
            results.append(bench.evaluate(task))
            paths.append(bench.cell(task).path)
    return results, paths


def start_evaluations(
    models: Models,
    request: EvaluationRequest,
    roots: Sequence[str],
    output: Path,
    machine: Machine | None,
    report: Reporter,
) -> Iterator[Evaluation]:
    """One bench a model, loaded when its turn comes. Raises as `evaluate` does."""
    machine = machine or Machine()
    clock = machine.start()
    targets = TargetSets(request, data.DataRoots.parse(roots), machine.cache, report)
    store = ResultStore(output, clock.environment, report)
    features = feature_store(machine, clock.device, report)
    for i in range(len(models.refs)):
        backbone = models.load(i, clock.device, report)
        name = models.names[i] if models.names else None
        yield Evaluation(backbone, name, request, targets, features, store, clock, report)


def feature_store(machine: Machine, device: str, report: Reporter) -> FeatureStore:
    """The features that this machine keeps."""
    return FeatureStore(
        machine.cache,
        batch_size=machine.batch_size,
        workers=machine.workers,
        device=device,
        report=report,
    )
