"""Evaluate frozen backbones: load and check the data, extract features, fit heads, store results.

`evaluate` is the public function. It builds one `Evaluation` per backbone, which runs task by task:

    evaluate -> Evaluation.run(task) -> FeatureStore.get -> evaluate_block -> ResultStore.finish

Under `torchrun --nproc-per-node N -m fsbench benchmark ...` rank r computes the blocks of shard r/N
of every episodic task and every Nth probe, all ranks into one results folder, whose locks merge the
shards. Features are extracted by the rank that needs them first, while the others wait. At the end
rank 0 reads all results, and alone reports.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fsbench import data as datasets
from fsbench.api.machine import RunContext, progress_reporter
from fsbench.api.options import EvaluationOptions, Machine, ModelOptions
from fsbench.api.request import (
    AUTO,
    EvaluationRequest,
    build_request,
    check_models,
    load_named_backbone,
    name_backbones,
    parse_shard,
    pool_of,
    request_of_specs,
)
from fsbench.api.results import Results
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import (
    TIMED_BLOCKS,
    FeatureRequest,
    FeatureStore,
    check_input_size,
    feature_block_size,
)
from fsbench.backbones.kernels import exact_float32
from fsbench.core import process
from fsbench.core.errors import UsageError
from fsbench.core.options import takes_options
from fsbench.core.progress import (
    SILENT,
    Numbered,
    Reporter,
    WorkEstimate,
    log_detail,
    require_consent,
)
from fsbench.core.records import ImageRecords, ProbeRecords
from fsbench.core.registry import CODE
from fsbench.core.schema import DatasetRecord, Result
from fsbench.core.specs import (
    FITTED,
    SAMPLING,
    EpisodicSpec,
    ImageSpec,
    KnnSpec,
    Pool,
    ProbeSpec,
    Spec,
    choose_resolution,
)
from fsbench.core.tasks import TaskId
from fsbench.data.augmentation import RandomView
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.splits import Indices, split_dataset
from fsbench.results.names import model_name
from fsbench.results.store import ResultStore
from protocols import EPISODIC, episodes_per_block, needs_features
from protocols.base import Inputs
from protocols.heads.execution import retry_with_halvings
from protocols.probes import knn, linear

WORTH_TIMING = 1000
"""Images below which no network that fits fsbench takes an hour."""
SMALLER = "choose another --device, a smaller --input-size, fewer --episodes or tasks"
FAR = 2
"""Ratio of resolutions from which on networks give features of other quality."""
RANKS_TIMEOUT = timedelta(days=30)
"""Ranks end at different times; one that has failed is noticed at once."""


@takes_options(EvaluationOptions)
def evaluate(options: EvaluationOptions) -> Results:
    """Evaluate frozen backbones on few-shot tasks and probes.

    Parameters
    ----------
    {options}

    It returns one `Result` per model and task. UsageError: names or options do not fit, or the work
    takes over an hour without `yes`; DataError: images are missing, or classes are too small;
    CheckpointError: weights do not fit the architecture.

    Examples
    --------
    >>> import torch, fsbench
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    >>> backbone = fsbench.Backbone.from_module(
    ...     net, name="tiny", input_size=32, mean="half", std="half", pool="avg"
    ... )
    >>> results = fsbench.evaluate(
    ...     backbone, ["toy_tiles:5w1s", "toy_photo:5w5s/ridge"], input_size=32, episodes=20
    ... )
    >>> results.to_frame()[["dataset", "n_shot", "head"]].values.tolist()
    [['toy_tiles', 1, 'linear'], ['toy_photo', 5, 'ridge']]
    """
    spec_files = [*map(Path, options.spec)]
    codes = {head: FITTED.add(head) for head in options.heads or () if head.startswith(CODE)}
    named = [codes.get(h, h) for h in options.heads or () if not (spec_files and h in codes)]
    if len(set(codes.values())) < len(codes):
        raise UsageError(
            f"two heads are called {', '.join(sorted(set(codes.values())))}",
            fix="give each function a name of its own: results tell heads apart by it",
        )
    options = replace(options, heads=named or None)
    if spec_files and options.states_specs:
        raise UsageError(
            "options of specs beside --spec, which states them all",
            fix="leave out everything but the model, data sets, machine and output",
        )
    if spec_files:
        request = request_of_specs(spec_files, options.task_names)
    else:
        request = build_request(options)
    if options.output and Path(options.output).is_file():
        raise UsageError(f"{options.output} is a file", fix="name a folder for the results")
    # Without a folder to keep them in, results live as long as the object that is returned.
    temporary = None if options.output else tempfile.TemporaryDirectory(prefix="fsbench-")
    results = run_request(
        options,
        replace(request, shard=parse_shard(options.shard), overwrite=options.overwrite),
        output=Path(temporary.name if temporary else options.output or ""),
        machine=options,
        yes=options.yes,
        report=progress_reporter(options.progress),
    )
    if options.shard and options.output:  # a part without episodes is a folder without results
        Path(options.output).mkdir(parents=True, exist_ok=True)
    return Results(results, results.paths, temporary)


def run_request(
    models: ModelOptions,
    request: EvaluationRequest,
    *,
    output: Path = Path("results"),
    machine: Machine,
    yes: bool = False,
    report: Reporter = SILENT,
) -> Results:
    """Evaluate every model on every task; results that are complete in `output` are read.

    Data sets are loaded and checked before any work. Raises DataError,
    CheckpointError, UsageError; without `yes` also when the work would take over an hour. Under
    torchrun the processes share the work, and all but the first return no results.
    """
    from fsbench.core.distributed import is_first_process, is_one_of_several, open_ranks

    if is_one_of_several() and request.shard != (0, 1):
        raise UsageError("--shard under torchrun, which makes shards", fix="leave one of them out")
    check_models(models)
    report = Numbered(report, len(name_backbones(models)) * len(request.tasks))
    with open_ranks(process.resolve_device(machine.device), "gloo", RANKS_TIMEOUT) as (ranks, gpu):
        machine = replace(machine, device=str(gpu))
        start = partial(start_evaluations, models, output=output, machine=machine, report=report)
        if ranks.size > 1:
            if request.overwrite and ranks.first:
                clear_results(start(request), yes)
            ranks.wait()
            request = replace(request, overwrite=False)
            run_tasks(start(replace(request, shard=(ranks.rank, ranks.size))), yes)
            ranks.wait()
    return run_tasks(start(request), yes) if is_first_process() else Results((), ())


def run_tasks(evaluations: "Iterable[Evaluation]", yes: bool) -> Results:
    """Return the results of the tasks of evaluations, those of which they have a share."""
    results: list[Result] = []
    paths: list[Path] = []
    for evaluation in evaluations:
        evaluation.check_cost(yes)
        for task in evaluation.share:
            results.append(evaluation.run(task))
            paths.append(evaluation.cell(task).folder)
            log_detail(evaluation.report, f"{results[-1].column}: {paths[-1]}")
    return Results(results, paths)


def clear_results(evaluations: "Iterable[Evaluation]", yes: bool) -> None:
    """Delete the results of all tasks, which are to be computed again."""
    for evaluation in evaluations:
        evaluation.check_cost(yes)
        for task in evaluation.request.tasks:
            evaluation.cell(task).clear()


def start_evaluations(
    models: ModelOptions,
    request: EvaluationRequest,
    output: Path,
    machine: Machine,
    report: Numbered,
) -> "Iterator[Evaluation]":
    """Yield one evaluation per model, each loaded when its turn comes; all data sets come first."""
    context = RunContext.start(machine)
    load = partial(load_named_backbone, models, needs=request.needs, test_size=request.test_size)
    first, *others = name_backbones(models)
    for ref in others:  # damaged files are errors before hours are spent
        load(ref, "cpu")
    loaded = load(first, context.device, report)
    targets = TargetSets(request, machine.roots, machine.cache_folder, report)
    features = feature_store(machine, context.device, report)
    for ref in (first, *others):
        backbone = loaded if ref == first else load(ref, context.device, report)
        report.name = models.name or (model_name(backbone.facts) if others else "")
        evaluation = Evaluation(
            backbone, models.name, request, targets, features, output, context, report
        )
        evaluation.introduce()
        yield evaluation


class TargetSets:
    """The target data sets of a request, loaded and checked before any work starts."""

    def __init__(
        self, request: EvaluationRequest, roots: datasets.DataRoots, cache: Path, report: Reporter
    ) -> None:
        self.cache, self.report = cache, report
        keys = dict.fromkeys((task.dataset, pool_of(task)) for task in request.tasks)
        self.datasets = {key: datasets.load_target(key[0], roots, key[1], cache) for key in keys}
        for task in sorted(request.tasks, key=lambda task: -(task.n_shot or 0)):
            if not task.probe:  # classes too small or groups missing are errors now, not later
                EpisodeSampler.of(request.episode_spec(task), self.of(task))
        for dataset in self.datasets.values():
            for note in dataset.notes:
                report.log(f"{dataset.name}: {note}")
        self._records: dict[tuple[str, Pool], DatasetRecord] = {}

    def of(self, task: TaskId) -> TargetDataset:
        return self.datasets[task.dataset, pool_of(task)]

    def test_counts(self, task: TaskId) -> tuple[int, ...]:
        """Return the test images of each class of a probe's data set."""
        dataset = self.of(task)
        labels = dataset.labels[split_dataset(dataset)[1]]
        return tuple(int((labels == c).sum()) for c in dataset.class_counts)

    def record(self, task: TaskId) -> DatasetRecord:
        """Return what a result states about its images: also groups (disjoint), test counts."""
        key = (task.dataset, pool_of(task))
        if key not in self._records:
            self._records[key] = datasets.describe_dataset(
                self.datasets[key], self.cache, self.report
            )
        if task.protocol is None:
            return self._records[key].model_copy(update={"test_counts": self.test_counts(task)})
        if SAMPLING[task.protocol].track == "classic":
            return self._records[key]
        groups = self.of(task).require_groups().hash
        return self._records[key].model_copy(update={"groups": groups})


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The evaluation of one backbone on the tasks of a request; results go to `output`."""

    backbone: Backbone
    name: str | None
    request: EvaluationRequest
    targets: TargetSets
    features: FeatureStore
    output: Path
    context: RunContext
    report: Numbered

    def run(self, task: TaskId) -> Result:
        """Return the result of a task: read if it is complete, else computed and written."""
        self.report.number += 1
        cell, spec = self.cell(task), self.spec(task)
        if self.request.overwrite:
            cell.clear()
        with exact_float32(self.context.device):
            if not isinstance(spec, EpisodicSpec):
                return cell.complete_result() or self.run_probe(task, cell, spec)
            return retry_with_halvings(
                lambda halvings: self.run_episodes(task, spec, halvings),
                self.report.log,
                cell.halvings,
            )

    def run_episodes(self, task: TaskId, spec: EpisodicSpec, halvings: int) -> Result:
        """Compute the missing blocks of an episodic task and write its result.

        halvings: of the episodes that share a forward pass; results of other halvings are not
        mixed. Raises OutOfMemory.
        """
        context = replace(self.context, halvings=halvings)
        cell = self.cell(task, context)
        blocks = self.block_episodes(spec)
        episodes = np.array([i for block in blocks.values() for i in block], dtype=np.int64)
        if result := cell.complete_result(episodes):
            return result
        missing = cell.missing_blocks(blocks)
        inputs = inputs_of(self.backbone, task, spec.image, self.targets, self.features)
        inputs = replace(inputs, halvings=halvings)
        head = EPISODIC.load(spec.adaptation)
        done = episodes.size - sum(len(blocks[block]) for block in missing)
        what = task.in_results
        with self.report.task(
            f"{what.dataset}:{what.shape} {what.head}", episodes.size, "episodes", done
        ) as advance:
            for block in missing:
                cell.write_block(block, head.evaluate_block(inputs, spec, block))
                advance(len(blocks[block]))
        return cell.finish(
            episodes,
            limited=self.request.options.limit is not None,
            provenance=context.provenance(),
            feature_norm=inputs.feature_norm,
        )

    def run_probe(self, task: TaskId, cell: ResultStore, spec: ProbeSpec | KnnSpec) -> Result:
        """Compute a probe of a whole data set and write its result."""
        inputs = inputs_of(self.backbone, task, spec.image, self.targets, self.features)
        train, test = split_dataset(inputs.dataset)
        records: ImageRecords | ProbeRecords
        if isinstance(spec, KnnSpec):
            records = knn.evaluate_knn_probe(inputs, spec, train, test)
        else:
            views = self.views(task, spec, train) if spec.n_views else None
            records = linear.evaluate_linear_probe(inputs, spec, train, test, self.report, views)
        return cell.write(
            records,
            limited=isinstance(spec, ProbeSpec) and self.request.options.limit is not None,
            provenance=self.context.provenance(),
            feature_norm=inputs.feature_norm,
        )

    def views(self, task: TaskId, spec: ProbeSpec, train: Indices) -> linear.ViewFeatures:
        """Return epoch -> features of a random view of all training images.

        They are cached for the augmentation `views`, else made on the way.
        """
        part, fingerprint = self.targets.of(task).take(train), self.targets.record(task).fingerprint
        images = FeatureRequest(self.backbone, part, spec.image, fingerprint)

        def features(epoch: int) -> NDArray[np.float32]:
            view = RandomView(spec.seed, epoch % spec.n_views)
            if spec.augmentation == "views":
                return self.features.get(replace(images, view=view))
            rows = self.features.rows(replace(images, view=view))
            return np.concatenate([block for _, block in rows])

        return features

    def spec(self, task: TaskId) -> Spec:
        """Return the full spec of a task for this backbone."""
        facts = self.backbone.facts
        return self.request.spec(task, facts.input_size, facts.evaluation_size)

    @cached_property
    def share(self) -> list[TaskId]:
        """The tasks of which this shard has a part: blocks of episodes, or every nth probe."""
        index, parts = self.request.shard
        probes = [task for task in self.request.tasks if task.probe][index::parts]
        specs = {task: self.spec(task) for task in self.request.tasks}
        return [
            task
            for task, spec in specs.items()
            if task in probes or (isinstance(spec, EpisodicSpec) and self.block_episodes(spec))
        ]

    def introduce(self) -> None:
        """Log how features are taken, and a warning where the resolution is far from training's."""
        facts, log, name = self.backbone.facts, self.report.log, self.report.name
        auto = self.request.options.input_size == AUTO and not self.request.specs
        for image in dict.fromkeys(self.spec(task).image for task in self.request.tasks):
            log(f"{name and f'{name}, '}{facts}; images{' (auto)' if auto else ''} {image}")
            size, native = image.input_size, facts.input_size
            if native is None or auto or facts.random_init is not None:
                continue
            ratio = max(size, native) / min(size, native)
            if ratio >= FAR and size != facts.evaluation_size:
                auto_size = facts.evaluation_size or choose_resolution(native)
                log(
                    f"warning: {size} px is {ratio:.2g} times "
                    f"{'larger' if size > native else 'smaller'} than the {native} px that "
                    f"{facts.ref} was trained at; --input-size auto takes {auto_size} px"
                )

    def cell(self, task: TaskId, context: RunContext | None = None) -> ResultStore:
        """Return the store of a task's result; context: one with batch halvings."""
        facts = self.backbone.facts, self.targets.record(task), self.spec(task)
        environment = (context or self.context).environment
        return ResultStore(self.output, *facts, environment, self.report, self.name)

    def block_episodes(self, spec: EpisodicSpec) -> dict[int, range]:
        """Return the episodes to compute in each block."""
        size = episodes_per_block(spec, self.backbone.facts.feature_dim)
        return self.request.block_episodes(size)

    def check_cost(self, yes: bool) -> None:
        """Log how long the remaining work will take; refuse over an hour without `yes`."""
        extraction = estimate_extraction(self.extractions(), self.features)
        tuning = estimate_tuning(self.blocks_left(), self.backbone, self.context.device)
        model = self.report.name or self.backbone.facts.ref
        require_consent(model, extraction + tuning, yes, self.report.log, SMALLER)

    def extractions(self) -> "list[Extraction]":
        """Return features that are not in the cache, random views last."""
        missing = []
        first = {(t.dataset, pool_of(t)): t for t in self.share if on_features(t)}
        for task in first.values():
            dataset, fingerprint = self.targets.of(task), self.targets.record(task).fingerprint
            wanted = FeatureRequest(self.backbone, dataset, self.spec(task).image, fingerprint)
            if not self.features.holds(wanted):
                missing.append((len(dataset), wanted))
        for task in self.share:
            spec = self.spec(task)
            if isinstance(spec, ProbeSpec) and spec.n_views and not self.cell(task).earlier():
                dataset, fingerprint = self.targets.of(task), self.targets.record(task).fingerprint
                part = dataset.take(split_dataset(dataset)[0])
                stored = spec.augmentation == "views"
                view = RandomView(spec.seed, 0) if stored else None
                fingerprint = fingerprint if stored else ""
                first_view = FeatureRequest(self.backbone, part, spec.image, fingerprint, view)
                missing.append((len(part) * spec.n_views, first_view))
        return missing

    def blocks_left(self) -> Counter[EpisodicSpec]:
        """Return spec -> blocks left to compute, of heads that can estimate their time."""
        left = Counter[EpisodicSpec]()
        for task in self.share:
            spec = self.spec(task)
            if isinstance(spec, EpisodicSpec) and block_timer(spec):
                blocks = self.block_episodes(spec)
                missing = self.cell(task).missing_blocks(blocks)
                left[spec] += len(blocks if self.request.overwrite else missing)
        return left


Extraction = tuple[int, FeatureRequest]
"""Images whose features are missing, with those of all views of which the request is the first."""


def on_features(task: TaskId) -> bool:
    """Return whether a task needs features of whole data sets; else it reads images itself."""
    return task.head is None or needs_features(EPISODIC.load(task.head))


def inputs_of(
    backbone: Backbone, task: TaskId, image: ImageSpec, targets: TargetSets, features: FeatureStore
) -> Inputs:
    """Return the inputs of a head: backbone, data set, and features where the head needs them."""
    dataset, device = targets.of(task), features.device
    if not on_features(task):
        check_input_size(backbone, image.input_size, device)
        return Inputs(backbone, dataset, np.empty((len(dataset), 0), np.float32), device)
    fingerprint = targets.record(task).fingerprint
    rows = features.get(FeatureRequest(backbone, dataset, image, fingerprint))
    return Inputs(backbone, dataset, rows, device)


def feature_store(machine: Machine, device: str, report: Reporter) -> FeatureStore:
    cache, batch_size = machine.cache_folder, machine.batch_size
    return FeatureStore(cache, batch_size, machine.workers, device, report)


def seconds_per_image(backbone: Backbone, input_size: int, device: str) -> float:
    """Return the time of the forward pass alone, over a few black blocks after one to warm up."""
    size = feature_block_size(backbone.facts.feature_dim, input_size)
    images = torch.zeros((size, 3, input_size, input_size), dtype=torch.uint8, device=device)
    with torch.inference_mode():
        backbone.features(images).cpu()
        started = time.monotonic()
        for _ in range(TIMED_BLOCKS):
            backbone.features(images).cpu()
    return (time.monotonic() - started) / (TIMED_BLOCKS * size)


def estimate_extraction(
    missing: Sequence[Extraction], features: FeatureStore
) -> list[WorkEstimate]:
    """Return the cost of extracting features; nothing for a few images.

    The first blocks of every input size are extracted and timed, and stay in the cache; where
    features are not stored, black images are timed.
    """
    n_images, seconds = sum(n for n, _ in missing), dict[int, float]()
    if n_images < WORTH_TIMING:
        return []
    backbone = missing[0][1].backbone
    for _, request in missing:
        size = request.image.input_size
        if not seconds.get(size):
            is_stored = bool(request.fingerprint)
            black = partial(seconds_per_image, backbone, size, features.device)
            seconds[size] = features.seconds_per_image(request) if is_stored else black()
    total = sum(seconds[request.image.input_size] * n for n, request in missing)
    disk = n_images * backbone.facts.feature_dim * 4
    return [WorkEstimate(f"features of {n_images} images", total, disk=disk)]


def estimate_tuning(
    blocks: Counter[EpisodicSpec], backbone: Backbone, device: str
) -> list[WorkEstimate]:
    """Return the cost of heads that train for long; blocks: spec -> blocks not yet computed."""
    estimates = []
    for spec, n in blocks.items():
        time_block, e = block_timer(spec), spec.episode
        if time_block and n:
            size = episodes_per_block(spec, backbone.facts.feature_dim)
            what = f"{spec.adaptation} tuning of {n * size} {e.n_way}w{e.k_shot}s episodes"
            estimates.append(WorkEstimate(what, n * time_block(backbone, spec, device)))
    return estimates


def block_timer(spec: EpisodicSpec) -> Callable[[Backbone, EpisodicSpec, str], float] | None:
    """Return the function that estimates the seconds of one block; None for fast heads."""
    return getattr(EPISODIC.load(spec.adaptation), "block_seconds", None)
