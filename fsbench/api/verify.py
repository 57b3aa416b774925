"""Verify an entry: recompute some of its episodes from the weights and compare every outcome.

The episodes of each column are drawn from the digest of the entry and a seed that its submitter
cannot foresee (leaderboard/badges.py). They are recomputed by the evaluation itself, in the blocks
that they were computed in, so that in one environment every bit is equal (protocols/README.md).
Unless the features of a data set are cached, only the images of the drawn episodes are forwarded.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.api.compare import covers
from fsbench.api.evaluate import TargetSets, is_on_features
from fsbench.api.machine import RunContext
from fsbench.api.options import VerifyOptions
from fsbench.api.request import EvaluationRequest, FixedSpec, parse_models
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import check_input_size
from fsbench.backbones.kernels import exact_float32
from fsbench.core import process
from fsbench.core.errors import CheckpointError, DataError, UsageError, ValidationFailed
from fsbench.core.options import split_values
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import EpisodicSpec, ImageSpec
from fsbench.core.tasks import USER_DATA, TaskId, TaskPattern
from fsbench.data.base import Indices, TargetDataset
from fsbench.data.episodes import EpisodeSampler
from fsbench.results.assembly import SAME_BACKBONE, differing_episodes
from fsbench.results.entry import Loaded
from fsbench.results.provenance import describe_changes, environment_of
from leaderboard import badges
from leaderboard.badges import OWN_CODE, Badge, ColumnCheck, FlipCount
from leaderboard.entry_networks import Network
from leaderboard.signatures import require_key
from leaderboard.store import Board, BoardEntry
from protocols import EPISODIC, episodes_per_block
from protocols.base import Inputs


@dataclass(frozen=True, eq=False)
class Sample:
    """The episodes of one result that are recomputed; `task` names the data set on this machine."""

    loaded: Loaded
    records: EpisodeRecords
    spec: EpisodicSpec
    task: TaskId
    drawn: tuple[int, ...] = ()


def verify(options: VerifyOptions, report: Reporter = SILENT) -> Badge:
    """Recompute episodes of an entry and store the badge that states the outcome.

    Raises CheckpointError for other weights, DataError for other images, and ValidationFailed for
    code of the author, which may know the test images, and if a difference may be due to another
    environment: these say nothing about the entry, and no badge is stored.
    """
    if options.sign_with is not None:
        require_key(options.sign_with)
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    entry = Board.open(options.board).entry(options.entry)
    if any(network.facts.runs_code for network in entry.networks):
        raise ValidationFailed(
            f"'{entry.name}' is {OWN_CODE}: it may contain the answers, and give them again",
            fix="ask its author for weights and a reference that needs no code",
        )
    made = entry.loaded[0].result.provenance
    machine = replace(
        options,
        threads=options.threads or min(made.threads, os.cpu_count() or 1),
        batch_size=options.batch_size or made.batch_size,
    )
    context = RunContext.start(machine)
    extracts = process.resolve_device(machine.features_device or context.device)
    on_features = replace(context, features_device=process.device_model(extracts))
    model, *others = parse_models(options)
    if others:
        raise UsageError(f"{len(others) + 1} models for '{entry.name}'", fix="verify one at a time")
    model = replace(model, features=entry.loaded[0].result.backbone.feature_spec)
    backbone = model.load(context.device, report)
    network = match_network(entry, backbone.facts)
    episodes = None if options.episodes == "all" else options.episodes
    samples = [
        replace(sample, drawn=badges.draw_episodes(sample.loaded, episodes, entry.digest, seed))
        for sample in find_samples(network.loaded, [*map(str, split_values(options.tasks or ()))])
    ]
    fixed = {sample.task: FixedSpec(sample.spec) for sample in samples}
    request = EvaluationRequest(tuple(fixed), fixed=fixed)
    targets = TargetSets(request, machine, report, context.device)
    require_images(samples, targets)
    groups: dict[tuple[TargetDataset, ImageSpec, bool], list[Sample]] = {}
    for sample in samples:  # one pass over the images of each data set and input size
        key = (targets.of(sample.task), sample.spec.image, is_on_features(sample.task))
        groups.setdefault(key, []).append(sample)
    checks = []
    with report.task(f"verify {entry.name}", len(samples), "tasks") as advance:
        for group in groups.values():
            inputs, is_whole = load_features(backbone, group, targets)
            for sample in group:
                recomputed = recompute_sample(sample, inputs, is_whole)
                made_here = on_features if is_on_features(sample.task) else context
                checks.append(compare_episodes(sample, recomputed, made_here.environment))
                advance(1)
    made = context.provenance()
    software = {"fsbench": made.fsbench, "commit": made.git_commit or "none"}
    columns = {str(loaded.result.column) for loaded in network.loaded}
    badge = Badge(
        entry=entry.name,
        entry_digest=entry.digest,
        weights=network.facts.identity,
        date=context.started,
        environment=context.environment | software,
        seed=seed,
        checks=tuple(sorted(checks, key=lambda check: str(check.column))),
        not_verified=tuple(sorted(columns - {str(check.column) for check in checks})),
    )
    store_badge(options.board, badge, options.sign_with)
    return badge


def find_samples(results: Sequence[Loaded], texts: Sequence[str]) -> list[Sample]:
    """Return the few-shot results that the task ids name; of all official data sets without ids.

    Parts that an id leaves out match any result. Raises UsageError for an id that matches none.
    """
    patterns = [TaskPattern.parse(text) for text in texts]
    samples: list[Sample] = []
    unmatched = dict.fromkeys(texts)
    for loaded in sorted(results, key=lambda x: (x.result.column, x.result.spec_digest)):
        result, records, spec = loaded.result, loaded.records, loaded.result.spec
        if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
            continue
        if result.task.head in result.custom_code:
            continue
        matching = [pattern for pattern in patterns if covers(pattern, result)]
        for pattern in matching:
            unmatched.pop(pattern.text, None)
        if matching or not (patterns or "custom" in result.dataset.flags):
            user_data = [p.dataset for p in matching if p.dataset.startswith(USER_DATA)]
            task = TaskId.of([*user_data, result.dataset.name][0], spec)
            samples.append(Sample(loaded, records, spec, task))
    if unmatched or not samples:
        names = [str(x.result.task) for x in results if x.result.spec.kind == "episodic"]
        unnamed = [f"'{text}' names no episodes of the entry" for text in unmatched]
        raise UsageError(
            "; ".join(unnamed) or "the entry has no episodes of an official data set",
            fix=f"it has {', '.join(names[:12])}; name a folder of your own by -t folder:DIR",
        )
    return samples


def match_network(entry: BoardEntry, facts: BackboneFacts) -> Network:
    """Return the network of the entry that has these facts.

    Raises CheckpointError naming the facts in which the backbone is another one.
    """
    differences = {
        network: [n for n in SAME_BACKBONE if getattr(network.facts, n) != getattr(facts, n)]
        for network in entry.networks
    }
    nearest = min(entry.networks, key=lambda network: len(differences[network]))
    if names := differences[nearest]:
        pairs = ((n, getattr(facts, n), getattr(nearest.facts, n)) for n in names)
        listed = "; ".join(f"{name} {ours}, entry {theirs}" for name, ours, theirs in pairs)
        raise CheckpointError(
            f"{facts.ref} is no network of '{entry.name}': {listed}",
            fix="give the weights of the entry; random ones differ between kinds of CPU",
        )
    return nearest


def require_images(samples: Sequence[Sample], targets: TargetSets) -> None:
    """Raise DataError naming a data set whose images or groups are not those of the entry."""
    for sample in samples:
        here, there = targets.record(sample.task), sample.loaded.result.dataset
        if here.identity != there.identity:
            raise DataError(
                f"{there.name}: these images have the fingerprint {here.identity[:12]}, those of "
                f"the entry {there.identity[:12]}",
                fix="give the same copy of the data set with --data, or leave it out with -t",
            )


def load_features(
    backbone: Backbone, samples: Sequence[Sample], targets: TargetSets
) -> tuple[Inputs, bool]:
    """Return the inputs of samples of one data set and input size, and whether they are whole.

    Unless features of the data set from this device are cached, only the images of the drawn
    episodes are forwarded; features of the other ones are zero, and nothing is stored.
    """
    task, image, dataset = samples[0].task, samples[0].spec.image, targets.of(samples[0].task)
    features, request = targets.features, targets.request_all(backbone, task, image)
    if not is_on_features(task) or (
        features.holds(request)
        and features.read_device(request) == process.device_model(features.device)
    ):
        return targets.inputs(backbone, task, image), True
    request = features.place(request)
    check_input_size(request.backbone, image.input_size, features.device)
    images = np.unique(np.concatenate([find_needed_images(s, dataset) for s in samples]))
    part = replace(request, dataset=dataset.take(images), fingerprint="")
    rows = np.zeros(request.shape, np.float32)
    with features.report.task(f"{dataset.name} features", len(images), "images") as advance:
        for start, block in features.rows(part):
            rows[images[start : start + len(block)]] = block
            advance(len(block))
    return Inputs(backbone, dataset, rows, targets.device), len(images) == len(dataset)


def recompute_sample(sample: Sample, inputs: Inputs, whole_blocks: bool) -> EpisodeRecords:
    """Recompute the drawn episodes, or the whole blocks that they are in."""
    head = EPISODIC.load(sample.spec.adaptation)
    dim = sample.loaded.result.backbone.feature_dim
    size = episodes_per_block(sample.spec, dim, inputs.device)
    blocks = sorted({episode // size for episode in sample.drawn})
    with exact_float32(inputs.device):
        parts = [head.evaluate_block(inputs, sample.spec, block) for block in blocks]
    records = concatenate(parts)
    compared = records.index if whole_blocks else sample.drawn
    return records.take(np.isin(records.index, np.intersect1d(compared, sample.records.index)))


def find_needed_images(sample: Sample, dataset: TargetDataset) -> Indices:
    """Return the images of the drawn episodes; where dense queries count, all of their classes."""
    sampler, by_class = EpisodeSampler.of(sample.spec.episode, dataset), dataset.by_class
    parts = []
    for episode in map(sampler.episode, sample.drawn):
        if sample.records.dense_total is None:
            parts += [side.ravel() for side in episode.images(by_class)]
        else:
            parts += [by_class[class_id] for class_id in episode.class_ids.tolist()]
    return np.concatenate(parts)


def store_badge(board: Path, badge: Badge, sign_with: Path | None) -> None:
    """Store a badge, signed if there is a key; the board remembers what a signed one says.

    Raises ValidationFailed if differences may be due to the environment, or may not, and if the
    entry was replaced in the meantime.
    """
    name = badge.entry
    if badge.verdict == "undecided":
        undecided = [check for check in badge.checks if check.verdict == "undecided"]
        columns = ", ".join(str(check.column) for check in undecided)
        differs = "; ".join(dict.fromkeys(d for check in undecided for d in check.differs))
        raise ValidationFailed(
            f"'{name}': {columns} change by more than 0.1 point in another environment "
            f"({differs}); this says nothing about the entry",
            fix="verify in the environment of the entry, or draw more --episodes",
        )
    opened = Board.open(board)
    with opened.lock():
        if opened.entry(name).digest != badge.entry_digest:
            raise ValidationFailed(
                f"'{name}' was replaced while its episodes were recomputed", fix="verify it again"
            )
        badges.write_badge(board / name, badge, sign_with)
        opened.record_changes()


def compare_episodes(
    sample: Sample, recomputed: EpisodeRecords, environment: Mapping[str, str]
) -> ColumnCheck:
    """Compare the entry's outcomes with recomputed ones.

    In the environment of the entry no outcome may differ, in another one few, and scored and dense
    queries have budgets of their own. The submitter wrote the entry's environment, so another one
    never gives more than the verdict tolerant. Of dense queries only the number of right ones per
    class is stored: at least so many differ.
    """
    result = sample.loaded.result
    stored = sample.records.take(np.isin(sample.records.index, recomputed.index))
    before, dense = environment_of(result.provenance), None
    differs = tuple(describe_changes(before, environment))
    equal: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    if stored.dense_correct is not None and recomputed.dense_correct is not None:
        total = np.asarray(stored.dense_total)
        dense = FlipCount.of(stored.dense_correct - recomputed.dense_correct, int(total.sum()))
        equal["dense queries"] = (total, np.asarray(recomputed.dense_total))
    if not differs:
        equal["collapsed episodes"] = (stored.collapsed, recomputed.collapsed)
        equal["non-finite episodes"] = (stored.finite, recomputed.finite)
    wrong = [name for name, pair in equal.items() if not np.array_equal(*pair)]
    gaps = stored.correct.astype(np.int64) - recomputed.correct
    return ColumnCheck(
        column=result.column,
        mean=result.score.mean,
        drawn=sample.drawn,
        episodes=len(recomputed.index),
        scored=FlipCount.of(gaps, stored.correct.size),
        dense=dense,
        differs=differs,
        wrong=tuple(differing_episodes(stored, recomputed)[: badges.MAX_WRONG].tolist()),
        other=f"other {', '.join(wrong)}" if wrong else None,
    )
