"""Evaluate frozen backbones: load and check the data, extract features, fit heads, store results.

`evaluate` is the public function. It builds one `Evaluation` per backbone, which runs task by task:

    evaluate -> Evaluation.run(task) -> FeatureStore.get -> evaluate_block -> ResultStore.finish

Under `torchrun --nproc-per-node N -m fsbench benchmark ...` every rank extracts each Nth block of
images, and then takes blocks of episodes of one task after the other, each the next that no rank
has. After each backbone rank 0 unites the blocks in results; it alone reports.
"""

import tempfile
import timeit
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np

from fsbench import data
from fsbench.api.machine import RunContext, progress_reporter
from fsbench.api.options import EvaluationOptions, Machine
from fsbench.api.request import AUTO, EvaluationRequest, Model, parse_models, pool_of, read_request
from fsbench.api.results import Results
from fsbench.backbones import features
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore
from fsbench.backbones.kernels import exact_float32
from fsbench.core import process, progress
from fsbench.core.distributed import ALONE, Ranks, open_ranks
from fsbench.core.errors import UsageError
from fsbench.core.io import limit_cache
from fsbench.core.options import takes_options
from fsbench.core.progress import SILENT, Reporter, WorkEstimate
from fsbench.core.records import ImageRecords, ProbeRecords
from fsbench.core.schema import DatasetRecord, FeatureCost, Result
from fsbench.core.specs import (
    SAMPLING,
    EpisodicSpec,
    ImageSpec,
    KnnSpec,
    ProbeSpec,
    Spec,
    choose_resolution,
)
from fsbench.core.tasks import TaskId
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.splits import split_dataset
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
TIMED_BLOCKS = 2
"""Blocks whose time says how long an extraction takes, after one to warm up."""
TIMER = "block_seconds"
"""Function of a head that estimates the seconds of one block; fast heads have none."""


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
    request = read_request(options)
    if options.output and Path(options.output).is_file():
        raise UsageError(f"{options.output} is a file", fix="name a folder for the results")
    # Without a folder to keep them in, results live as long as the object that is returned.
    temporary = None if options.output else tempfile.TemporaryDirectory(prefix="fsbench-")
    output = Path(temporary.name if temporary else options.output or "")
    options = replace(options, output=output)
    results = run_request(options, request, progress_reporter(options.progress))
    if options.shard:  # a part without episodes is a folder without results
        output.mkdir(parents=True, exist_ok=True)
    return Results(results, results.paths, temporary)


def run_request(
    options: EvaluationOptions, request: EvaluationRequest, report: Reporter = SILENT
) -> Results:
    """Evaluate every model on every task; results that are complete in the output are read.

    options: of models, machine and output. Data sets are loaded and checked before any work. Raises
    DataError, CheckpointError, UsageError; without `yes` also when the work would take over an
    hour. Under torchrun the processes share the work, and all but the first return no results.
    """
    if process.is_one_of_several() and request.shard != (0, 1):
        raise UsageError("--shard under torchrun, which makes shards", fix="leave one of them out")
    results, paths = list[Result](), list[Path]()
    device = process.resolve_device(options.device)
    with open_ranks(device, "gloo", RANKS_TIMEOUT) as (ranks, local):
        options = replace(options, device=str(local))
        for evaluation in start_evaluations(options, request, report, ranks):
            united = evaluation.share_tasks() if ranks.size > 1 else evaluation
            for task in united.share if ranks.first else ():
                results.append(united.run(task))
                paths.append(united.store(task).folder)
                if progress.VERBOSITY.get() > 0:
                    report.log(f"{results[-1].column}: {paths[-1]}")
    return Results(results, paths)


def start_evaluations(
    options: EvaluationOptions,
    request: EvaluationRequest,
    report: Reporter = SILENT,
    ranks: Ranks = ALONE,
) -> "Iterator[Evaluation]":
    """Yield one evaluation per model, each loaded when its turn comes; all data sets come first.

    Each logs how features are taken and how long the work takes; over an hour needs `yes`.
    """
    models, context = parse_models(options), RunContext.start(options)
    report = progress.Numbered(report, len(models) * len(request.tasks))
    load = partial(Model.load, report=report, needs=request.needs, test_size=request.test_size)
    for model in models[1:]:  # damaged files are errors before hours are spent
        load(model, "cpu", report=SILENT)
    first = load(models[0], context.device)
    targets = TargetSets(request, options, report, context.device)
    for model in models:
        backbone = first if model is models[0] else load(model, context.device)
        report.name = options.name or (model_name(backbone.facts) if len(models) > 1 else "")
        about = request, targets, Path(options.output or ""), context, report, ranks
        evaluation = Evaluation(backbone, options.name, *about)
        evaluation.introduce()
        if ranks.first:
            evaluation.check_cost(options.yes)
        yield evaluation


class TargetSets:
    """The target data sets of a request, loaded and checked, and the store of their features."""

    def __init__(
        self, request: EvaluationRequest, machine: Machine, report: Reporter, device: str = "cpu"
    ) -> None:
        folder, roots = machine.cache_folder, machine.roots
        limit = limit_cache(folder, machine.cache_size)
        workers = min(32, process.count_cores()) if machine.workers is None else machine.workers
        other, self.device = machine.features_device or device, device
        extracts = device if device.startswith(other) else other
        self.features = FeatureStore(folder, machine.batch_size, workers, extracts, report, limit)
        self.describe = cache(partial(data.describe_dataset, cache=folder, report=report))
        keys = dict.fromkeys((task.dataset, pool_of(task)) for task in request.tasks)
        self.datasets = {key: data.load_target(key[0], roots, key[1], folder) for key in keys}
        for task in sorted(request.tasks, key=lambda task: -(task.n_shot or 0)):
            if not task.probe:  # classes too small or groups missing are errors now, not later
                EpisodeSampler.of(request.episode_spec(task), self.of(task))
        for dataset in self.datasets.values():
            for note in dataset.notes:
                report.log(f"{dataset.name}: {note}")

    def of(self, task: TaskId) -> TargetDataset:
        return self.datasets[task.dataset, pool_of(task)]

    def record(self, task: TaskId) -> DatasetRecord:
        """Return what a result states about its images: also groups (disjoint), test counts."""
        dataset = self.of(task)
        record: DatasetRecord = self.describe(dataset)
        if task.protocol is None:
            labels = dataset.labels[split_dataset(dataset)[1]]
            counts = tuple(int((labels == c).sum()) for c in dataset.class_counts)
            return record.model_copy(update={"test_counts": counts})
        if SAMPLING[task.protocol].track == "classic":
            return record
        return record.model_copy(update={"groups": dataset.require_groups().hash})

    def request_all(self, backbone: Backbone, task: TaskId, image: ImageSpec) -> FeatureRequest:
        """Return the request of the features of all images of a task."""
        return FeatureRequest(backbone, self.of(task), image, self.record(task).fingerprint)

    def inputs(self, backbone: Backbone, task: TaskId, image: ImageSpec) -> Inputs:
        """Return the inputs of a head: backbone, data set, and features if it needs them."""
        dataset, device = self.of(task), self.device
        if is_on_features(task):
            rows = self.features.get(self.request_all(backbone, task, image))
        else:
            features.check_input_size(backbone, image.input_size, device)
            rows = np.empty((len(dataset), 0), np.float32)
        return Inputs(backbone, dataset, rows, device)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The evaluation of one backbone on the tasks of a request; results go to `output`.

    loaded: inputs by data set, pool, images, and whether they have features.
    """

    backbone: Backbone
    name: str | None
    request: EvaluationRequest
    targets: TargetSets
    output: Path
    context: RunContext
    report: progress.Numbered
    ranks: Ranks = ALONE
    loaded: dict[tuple[str, str, ImageSpec, bool], Inputs] = field(default_factory=dict)

    def run(self, task: TaskId) -> Result:
        """Return the result of a task: read if it is complete, else computed and written."""
        self.report.number += 1
        store, spec = self.store(task), self.spec(task)
        if self.request.overwrite:
            store.clear()
        with exact_float32(self.context.device):
            if not isinstance(spec, EpisodicSpec):
                return store.complete_result() or self.run_probe(task, store, spec)
            attempt = partial(self.run_episodes, task, spec)
            return retry_with_halvings(attempt, self.report.log, store.halvings)

    def run_episodes(self, task: TaskId, spec: EpisodicSpec, halvings: int) -> Result:
        """Compute the missing blocks of an episodic task and write its result.

        halvings: of the episodes that share a forward pass; results of other halvings are not
        mixed. Raises OutOfMemory.
        """
        store, blocks = self.store(task, halvings), self.block_episodes(task)
        episodes = np.array([i for block in blocks.values() for i in block], dtype=np.int64)
        if result := store.complete_result(episodes):
            return result
        self.compute_blocks(task, spec, halvings)
        return store.finish(
            episodes,
            limited=self.request.is_limited(task),
            provenance=self.context_of(task, halvings).provenance(self.read_cost(task)),
            feature_norm=self.inputs(task).feature_norm,
        )

    def compute_blocks(self, task: TaskId, spec: EpisodicSpec, halvings: int) -> None:
        """Compute the missing blocks of a task, of several ranks those that fall to this one.

        Progress counts the blocks of all ranks. Raises OutOfMemory.
        """
        store = self.store(task, halvings)
        blocks, head = self.block_episodes(task), EPISODIC.load(spec.adaptation)
        missing, n_episodes = store.missing_blocks(blocks), sum(map(len, blocks.values()))
        if not missing:
            return
        inputs, what = replace(self.inputs(task), halvings=halvings), task.in_results
        title = f"{what.dataset}:{what.shape} {what.head}"
        done = n_episodes - sum(len(blocks[block]) for block in missing)
        with self.report.task(title, n_episodes, "episodes", done) as advance:
            for block in self.ranks.share(blocks, str(store.blocks)):
                if block in missing:
                    store.write_block(block, head.evaluate_block(inputs, spec, block))
                    earlier = [b for b in missing if b <= block]
                    advance(sum(len(blocks[b]) for b in earlier))
                    missing = missing[len(earlier) :]

    def share_tasks(self) -> "Evaluation":
        """Compute what falls to this one of several ranks.

        Return the evaluation by which rank 0 unites it in results, and computes what is left.
        """
        tasks = [task for task in self.request.tasks if self.agree_on_work(task)]
        for whole in self.feature_requests(tasks).values():
            self.targets.features.extract_together(whole, self.ranks)
        for task in tasks:
            spec, store = self.spec(task), self.store(task)
            if isinstance(spec, EpisodicSpec):
                with exact_float32(self.context.device):
                    compute = partial(self.compute_blocks, task, spec)
                    retry_with_halvings(compute, self.report.log, store.halvings)
            else:
                for _ in self.ranks.share([task], str(store.blocks)):
                    self.run(task)
        self.ranks.wait()
        return replace(self, ranks=ALONE, request=replace(self.request, overwrite=False))

    def agree_on_work(self, task: TaskId) -> bool:
        """Return whether rank 0 has work left in a task, whose old result it clears first."""
        if self.ranks.first and self.request.overwrite:
            self.store(task).clear()
        return bool(self.ranks.collect(self.ranks.first and self.has_work(task))[0])

    def has_work(self, task: TaskId) -> bool:
        """Return whether anything of a task is left to compute."""
        store = self.store(task)
        if self.request.overwrite or task.probe:
            return self.request.overwrite or store.earlier() is None
        return bool(store.missing_blocks(self.block_episodes(task)))

    def run_probe(self, task: TaskId, store: ResultStore, spec: ProbeSpec | KnnSpec) -> Result:
        """Compute a probe of a whole data set and write its result."""
        inputs = self.inputs(task)
        train, test = split_dataset(inputs.dataset)
        records: ImageRecords | ProbeRecords
        if isinstance(spec, KnnSpec):
            records = knn.evaluate_knn_probe(inputs, spec, train, test)
        else:
            records = linear.evaluate_linear_probe(inputs, spec, train, test, self.report)
        return store.write(
            records,
            limited=isinstance(spec, ProbeSpec) and self.request.is_limited(task),
            provenance=self.context_of(task).provenance(self.read_cost(task)),
            feature_norm=inputs.feature_norm,
        )

    def spec(self, task: TaskId) -> Spec:
        """Return the full spec of a task for this backbone."""
        facts = self.backbone.facts
        return self.request.spec(task, facts.input_size, facts.evaluation_size)

    def inputs(self, task: TaskId) -> Inputs:
        """Return the inputs of a task, which stay loaded for further ones."""
        image = self.spec(task).image
        key = task.dataset, pool_of(task), image, is_on_features(task)
        if key not in self.loaded:
            self.loaded[key] = self.targets.inputs(self.backbone, task, image)
        return self.loaded[key]

    def read_cost(self, task: TaskId) -> FeatureCost | None:
        """Return the cost of the features of a task; None for a head that reads images."""
        return self.targets.features.read_cost(self.whole(task)) if is_on_features(task) else None

    def whole(self, task: TaskId) -> FeatureRequest:
        """Return the request of the features of all images of a task."""
        return self.targets.request_all(self.backbone, task, self.spec(task).image)

    @cached_property
    def share(self) -> list[TaskId]:
        """The tasks of which this shard has a part: blocks of episodes, or every nth probe."""
        index, parts = self.request.shard
        probes = [task for task in self.request.tasks if task.probe][index::parts]
        return [task for task in self.request.tasks if task in probes or self.block_episodes(task)]

    def introduce(self) -> None:
        """Log how features are taken, and a warning where the resolution is far from training's."""
        facts, log, name = self.backbone.facts, self.report.log, self.report.name
        auto = self.request.options.input_size == AUTO and not self.request.fixed
        for image in dict.fromkeys(self.spec(task).image for task in self.request.tasks):
            log(f"{name and f'{name}, '}{facts}; images{' (auto)' if auto else ''} {image}")
            size, native = image.input_size, facts.input_size
            if native is None or auto or facts.random_init is not None:
                continue
            if max(size, native) >= FAR * min(size, native) and size != facts.evaluation_size:
                auto_size = facts.evaluation_size or choose_resolution(native)
                log(
                    f"warning: {size} px is far from the {native} px that {facts.ref} was trained "
                    f"at; --input-size auto takes {auto_size} px"
                )

    def context_of(self, task: TaskId, halvings: int = 0) -> RunContext:
        """Return the context of a task after so many halvings, with the device of its features."""
        features, made_on = self.targets.features, None
        if is_on_features(task) and (features.kind, self.context.device) != ("cpu", "cpu"):
            made_on = features.read_device(self.whole(task))
        elif not halvings:
            return self.context
        return replace(self.context, halvings=halvings, features_device=made_on)

    def store(self, task: TaskId, halvings: int = 0) -> ResultStore:
        """Return the store of a task's result after so many halvings."""
        facts = self.backbone.facts, self.targets.record(task), self.spec(task)
        environment = self.context_of(task, halvings).environment
        return ResultStore(self.output, *facts, environment, self.report, self.name)

    def block_episodes(self, task: TaskId) -> dict[int, range]:
        """Return the episodes to compute in each block; none for a probe."""
        spec = self.spec(task)
        if not isinstance(spec, EpisodicSpec):
            return {}
        size = episodes_per_block(spec, self.backbone.facts.feature_dim, self.context.device)
        return self.request.block_episodes(task, size)

    def check_cost(self, yes: bool) -> None:
        """Log how long the remaining work will take; refuse over an hour without `yes`."""
        parts = [*self.estimate_extraction(), *self.estimate_tuning()]
        estimates = [replace(part, seconds=part.seconds / self.ranks.size) for part in parts]
        model = self.report.name or self.backbone.facts.ref
        progress.require_consent(model, estimates, yes, self.report.log, SMALLER)

    def estimate_extraction(self) -> Iterator[WorkEstimate]:
        """Yield the cost of extracting features, by their forward passes; none for few images."""
        store, seconds, images = self.targets.features, 0.0, Counter[int]()
        requests = self.feature_requests(filter(self.has_work, self.share)).values()
        missing = [whole for whole in requests if not store.holds(whole)]
        for whole in missing:
            images[whole.image.input_size] += len(whole.dataset)
        if images.total() < WORTH_TIMING:
            return
        backbone = store.place(missing[0]).backbone
        for size, n in images.items():
            features.check_input_size(backbone, size, store.device)
            seconds += n * seconds_per_image(backbone, size, store.device, store.batch_size)
        disk = images.total() * self.backbone.facts.feature_dim * 4
        yield WorkEstimate(f"features of {images.total()} images", seconds, disk=disk)

    def feature_requests(self, tasks: Iterable[TaskId]) -> dict[Hashable, FeatureRequest]:
        """Return the requests of the features of tasks, each once."""
        requests: dict[Hashable, FeatureRequest] = {}
        for task in filter(is_on_features, tasks):
            whole = self.whole(task)
            requests[task.dataset, pool_of(task), whole.image] = whole
        return requests

    def estimate_tuning(self) -> Iterator[WorkEstimate]:
        """Yield the cost of the missing blocks of heads that can estimate their time."""
        n_blocks = Counter[EpisodicSpec]()
        for task in self.share:
            spec, blocks = self.spec(task), self.block_episodes(task)
            if isinstance(spec, EpisodicSpec) and hasattr(EPISODIC.load(spec.adaptation), TIMER):
                is_new = self.request.overwrite
                n_blocks[spec] += len(blocks if is_new else self.store(task).missing_blocks(blocks))
        for spec, n in (+n_blocks).items():
            time_block = getattr(EPISODIC.load(spec.adaptation), TIMER)
            dim, device = self.backbone.facts.feature_dim, self.context.device
            n_episodes = n * episodes_per_block(spec, dim, device)
            shape = f"{spec.episode.n_way}w{spec.episode.k_shot}s"
            what = f"{spec.adaptation} tuning of {n_episodes} {shape} episodes"
            yield WorkEstimate(what, n * time_block(self.backbone, spec, device))


def is_on_features(task: TaskId) -> bool:
    """Return whether a task needs features of whole data sets; else it reads images itself."""
    return task.head is None or needs_features(EPISODIC.load(task.head))


def seconds_per_image(
    backbone: Backbone, input_size: int, device: str, batch_size: int | None = None
) -> float:
    """Return the time of an image in an extraction, over a few black blocks after one to warm up.

    batch_size: as in `FeatureStore`. Raise FsbenchError if a block exceeds the device's memory.
    """
    size = batch_size or features.feature_block_size(backbone.facts.feature_dim, input_size)
    pixels = np.zeros((size, 3, input_size, input_size), np.uint8)
    extract = partial(features.compute_features, backbone, pixels, device)
    extract()
    return timeit.timeit(extract, number=TIMED_BLOCKS) / (TIMED_BLOCKS * size)
