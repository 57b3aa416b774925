"""Verify an entry: recompute some of its episodes from the weights and compare every outcome.

The episodes of each column are drawn from the digest of the entry and a seed that its submitter
cannot foresee (leaderboard/badges.py). They are recomputed by the evaluation itself, in the blocks
that they were computed in, so that in one environment every bit is equal (protocols/README.md).
"""

import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.api.compare import covers
from fsbench.api.evaluate import (
    SMALLER,
    Extraction,
    TargetSets,
    block_timer,
    estimate_extraction,
    estimate_tuning,
    feature_store,
    inputs_of,
    on_features,
)
from fsbench.api.machine import RunContext
from fsbench.api.options import Machine
from fsbench.api.request import EvaluationRequest, Models
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore
from fsbench.backbones.precision import exact_float32
from fsbench.core.errors import CheckpointError, DataError, UsageError, ValidationFailed
from fsbench.core.progress import SILENT, Reporter, require_consent
from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import USER_DATA, TaskId, TaskPattern
from fsbench.results import provenance
from fsbench.results.assembly import SAME_BACKBONE, differing_episodes
from fsbench.results.entry import Loaded
from leaderboard import badges, signatures
from leaderboard.badges import FEWEST, Badge, CellCheck, FlipCount, allow_flips, draw_rows
from leaderboard.store import Board, BoardEntry, Network
from protocols import EPISODIC, episodes_per_block

SEEDS = 2**31
MAX_BATCH = 4096
"""Images per forward pass that are taken from an entry, which a stranger wrote."""
N_LISTED = 20
"""Episodes that a badge lists at most."""


@dataclass(frozen=True)
class Check:
    """Episodes to draw in each column that the task ids name, or of all; None draws every episode.

    seed: decides the draws; random by default, and stated in the badge.
    """

    episodes: int | None = FEWEST
    tasks: tuple[str, ...] = ()
    seed: int = field(default_factory=lambda: secrets.randbelow(SEEDS))

    @classmethod
    def parse(cls, episodes: str, tasks: tuple[str, ...], seed: int | None) -> "Check":
        """Return the check of the command line. Raises UsageError for too few episodes."""
        count = int(episodes) if episodes.isdecimal() and len(episodes) < 10 else 0
        if episodes != "all" and count < FEWEST:
            fix = f"give {FEWEST} or more, or all: fewer would not find a forged gain"
            raise UsageError(f"--episodes {episodes}", fix=fix)
        drawn = None if episodes == "all" else count
        return cls(drawn, tasks) if seed is None else cls(drawn, tasks, seed)


@dataclass(frozen=True, eq=False)
class Sample:
    """The episodes of one result that are recomputed; `task` names the data set on this machine."""

    cell: Loaded
    records: EpisodeRecords
    spec: EpisodicSpec
    task: TaskId
    drawn: tuple[int, ...] = ()


def verify(
    board: Path,
    name: str,
    models: Models,
    check: Check,
    *,
    machine: Machine | None = None,
    yes: bool = False,
    sign_with: Path | None = None,
    report: Reporter = SILENT,
) -> Badge:
    """Recompute episodes of an entry and store the badge that states the outcome.

    Without threads or a batch size, `machine` takes those of the entry. sign_with: the SSH key that
    signs the badge. Raises CheckpointError for other weights, DataError for other images, and
    ValidationFailed if a difference may be due to another environment: these say nothing about the
    entry, and no badge is stored. Raises UsageError if it would take over an hour, unless `yes`,
    and FsbenchError to sign without ssh-keygen.
    """
    if sign_with is not None:
        signatures.require_key(sign_with)
    entry = Board.open(board).entry(name)
    machine = match_machine(machine or Machine(), entry)
    context = RunContext.start(machine)
    stated = entry.cells[0].result.backbone.feature_spec
    backbone = replace(models, features=stated).load(0, context.device, report)
    network = match_network(entry, backbone.facts)
    samples = draw(find_samples(network.cells, check.tasks), check, entry.digest)
    request = EvaluationRequest(tuple(dict.fromkeys(sample.task for sample in samples)))
    targets = TargetSets(request, machine.roots, machine.cache_folder, report)
    require_images(samples, targets)
    features = feature_store(machine, context.device, report)
    recomputation = Recomputation(backbone, targets, features, context, report)
    recomputation.refuse_long(samples, yes)
    badge = make_badge(entry, network, check, samples, recomputation)
    require_decision(entry, badge)
    store_badge(board, name, badge, sign_with)
    return badge


def match_machine(machine: Machine, entry: BoardEntry) -> Machine:
    """Return the machine with the entry's threads and batch size where none are set.

    Raises UsageError for a batch size that would take far too long or too much memory.
    """
    made = entry.cells[0].result.provenance
    threads = machine.threads or min(made.threads, os.cpu_count() or 1)
    batch_size = machine.batch_size or made.batch_size
    if machine.batch_size is None and batch_size and batch_size > MAX_BATCH:
        raise UsageError(
            f"'{entry.name}' states a batch size of {batch_size}; at most {MAX_BATCH} is used",
            fix="give --batch-size; another one is another environment",
        )
    return replace(machine, threads=threads, batch_size=batch_size)


def find_samples(cells: Sequence[Loaded], texts: Sequence[str]) -> list[Sample]:
    """Return the few-shot results that the task ids name; of all official data sets without ids.

    Parts that an id leaves out match any result. Raises UsageError for an id that matches none.
    """
    patterns = [TaskPattern.parse(text) for text in texts]
    samples = []
    for cell in sorted(cells, key=lambda c: (c.result.column, c.result.spec_digest)):
        result, records, spec = cell.result, cell.records, cell.result.spec
        if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
            continue
        if result.task.head in result.custom_code:
            continue
        matching = [pattern for pattern in patterns if covers(pattern, result)]
        if bool(matching) if patterns else "custom" not in result.dataset.flags:
            folder = matching and matching[0].dataset.startswith(USER_DATA)
            dataset = matching[0].dataset if folder else result.dataset.name
            samples.append(Sample(cell, records, spec, TaskId.of(dataset, spec)))
    for pattern in patterns:
        if not any(covers(pattern, sample.cell.result) for sample in samples):
            raise UsageError(f"'{pattern.text}' names no episodes of the entry", fix=has(cells))
    if not samples:
        raise UsageError("the entry has no episodes of an official data set", fix=has(cells))
    return samples


def has(cells: Sequence[Loaded]) -> str:
    """Return which few-shot tasks the entry has, for an error message."""
    names = [str(cell.result.task) for cell in cells if cell.result.spec.kind == "episodic"]
    return (
        f"it has {', '.join(names[:12]) or 'no episodes'}; probes are not recomputed; name a "
        "folder of your own by -t folder:DIR"
    )


def draw(samples: Sequence[Sample], check: Check, digest: str) -> list[Sample]:
    """Return the samples with their drawn episodes. digest: of the entry."""
    drawn = []
    for sample in samples:
        index, column = sample.records.index, str(sample.cell.result.column)
        n = len(index) if check.episodes is None else check.episodes
        rows = draw_rows(len(index), n, digest, check.seed, column)
        drawn.append(replace(sample, drawn=tuple(index[rows].tolist())))
    return drawn


def match_network(entry: BoardEntry, facts: BackboneFacts) -> Network:
    """Return the network of the entry that has these facts.

    Raises CheckpointError naming the facts in which the backbone is another one.
    """
    wrong = {
        network.name: [n for n in SAME_BACKBONE if getattr(network.facts, n) != getattr(facts, n)]
        for network in entry.networks
    }
    nearest = min(entry.networks, key=lambda network: len(wrong[network.name]))
    if names := wrong[nearest.name]:
        stated = nearest.facts
        listed = "; ".join(f"{n} {getattr(facts, n)}, entry {getattr(stated, n)}" for n in names)
        raise CheckpointError(
            f"{facts.ref} is no network of '{entry.name}': {listed}",
            fix="give the weights that the entry was made with (-m, --arch, --random-init); random "
            "ones differ between kinds of CPU",
        )
    return nearest


def require_images(samples: Sequence[Sample], targets: TargetSets) -> None:
    """Raise DataError naming a data set whose images or groups are not those of the entry."""
    for sample in samples:
        here, there = targets.record(sample.task), sample.cell.result.dataset
        if here.identity != there.identity:
            raise DataError(
                f"{there.name}: these images have the fingerprint {here.identity[:12]}, the "
                f"entry was made on {there.identity[:12]}",
                fix="give the same copy of the data set with --data, or leave it out with -t",
            )


@dataclass(frozen=True, eq=False)
class Recomputation:
    """A backbone and the images, ready to recompute episodes."""

    backbone: Backbone
    targets: TargetSets
    features: FeatureStore
    context: RunContext
    report: Reporter

    def refuse_long(self, samples: Sequence[Sample], yes: bool) -> None:
        """Raise UsageError if it would take over an hour, unless `yes`."""
        missing = []
        for sample in {(s.task.dataset, s.spec.image): s for s in samples}.values():
            image, fingerprint = sample.spec.image, sample.cell.result.dataset.fingerprint
            dataset = self.targets.of(sample.task)
            wanted = FeatureRequest(self.backbone, dataset, image, fingerprint)
            if on_features(sample.task) and not self.features.holds(wanted):
                missing.append(Extraction(len(dataset), wanted))
        blocks = Counter[EpisodicSpec]()
        for sample in (s for s in samples if block_timer(s.spec)):
            blocks[sample.spec] += len(self.blocks(sample))
        estimates = estimate_tuning(blocks, self.backbone, self.context.device)
        estimates += estimate_extraction(missing, self.features, self.backbone)
        require_consent(self.backbone.facts.ref, estimates, yes, self.report.log, SMALLER)

    def blocks(self, sample: Sample) -> list[int]:
        """Return the blocks that contain the drawn episodes."""
        size = episodes_per_block(sample.spec, self.backbone.facts.feature_dim)
        return sorted({episode // size for episode in sample.drawn})

    def episodes(self, sample: Sample) -> EpisodeRecords:
        """Recompute the drawn episodes, and all others of the entry in their blocks."""
        protocol, device = EPISODIC.load(sample.spec.adaptation), self.context.device
        inputs = inputs_of(
            self.backbone, sample.task, sample.spec.image, self.targets, self.features, device
        )
        with exact_float32(device):
            parts = [protocol.evaluate_block(inputs, sample.spec, b) for b in self.blocks(sample)]
        records = concatenate(parts)
        return records.take(np.isin(records.index, sample.records.index))


def make_badge(
    entry: BoardEntry,
    network: Network,
    check: Check,
    samples: Sequence[Sample],
    recomputation: Recomputation,
) -> Badge:
    """Recompute and compare every sample."""
    environment = recomputation.context.environment
    checks = []
    with recomputation.report.task(f"verify {entry.name}", len(samples), "tasks") as advance:
        for sample in samples:
            checks.append(compare_episodes(sample, recomputation.episodes(sample), environment))
            advance(1)
    columns = {str(cell.result.column) for cell in network.cells}
    made = recomputation.context.provenance()
    return Badge(
        entry=entry.name,
        entry_digest=entry.digest,
        weights=network.facts.identity,
        date=recomputation.context.started,
        environment={**environment, "fsbench": made.fsbench, "commit": made.git_commit or "none"},
        seed=check.seed,
        cells=tuple(checks),
        not_verified=tuple(sorted(columns - {cell.cell for cell in checks})),
    )


def store_badge(board: Path, name: str, badge: Badge, sign_with: Path | None) -> None:
    """Store a badge, signed if there is a key; the board remembers what a signed one says.

    Raises ValidationFailed if the entry was replaced in the meantime.
    """
    opened = Board.open(board)
    with opened.lock():
        if opened.entry(name).digest != badge.entry_digest:
            raise ValidationFailed(
                f"'{name}' was replaced while its episodes were recomputed", fix="verify it again"
            )
        path = badges.write_badge(board / name, badge)
        if sign_with is not None:
            signatures.sign_file(path, sign_with, signatures.BADGE_NAMESPACE)
        opened.settle()


def require_decision(entry: BoardEntry, badge: Badge) -> None:
    """Raise ValidationFailed if differences may be due to the environment, or may not."""
    undecided = [check for check in badge.cells if check.verdict == "undecided"]
    if badge.verdict == "undecided":
        differs = "; ".join(dict.fromkeys(d for check in undecided for d in check.differs))
        raise ValidationFailed(
            f"'{entry.name}': {', '.join(c.cell for c in undecided)} change by more than 0.1 point "
            f"in another environment ({differs}); this says nothing about the entry",
            fix="verify in the environment of the entry, or draw more --episodes",
        )


def compare_episodes(
    sample: Sample, recomputed: EpisodeRecords, environment: Mapping[str, str]
) -> CellCheck:
    """Compare the entry's outcomes with recomputed ones.

    In the environment of the entry no outcome may differ, in another one few, and scored and dense
    queries have budgets of their own. The submitter wrote the entry's environment, so another one
    never gives more than the verdict tolerant.
    """
    stored = sample.records.take(np.isin(sample.records.index, recomputed.index))
    before = provenance.environment_of(sample.cell.result.provenance)
    changes = provenance.differing_parts(before, environment)
    differs = tuple(f"{part}: {theirs} -> {here}" for part, (theirs, here) in changes.items())
    scored, dense = count_flips(stored, recomputed, sample.spec.adaptation, bool(differs))
    return CellCheck(
        **scored.model_dump(),
        cell=str(sample.cell.result.column),
        mean=sample.cell.result.score.mean,
        drawn=sample.drawn,
        episodes=len(recomputed.index),
        dense=dense,
        differs=differs,
        wrong=tuple(int(i) for i in differing_episodes(stored, recomputed)[:N_LISTED]),
        other=other_differences(stored, recomputed, exact=not differs),
    )


def count_flips(
    stored: EpisodeRecords, recomputed: EpisodeRecords, adaptation: str, differs: bool
) -> tuple[FlipCount, FlipCount | None]:
    """Count the flips of scored and of dense queries; None if either side has no dense ones.

    Of dense queries only the number of right ones per class is stored: at least so many differ.
    """

    def count(gaps: NDArray[np.int64], outcomes: int) -> FlipCount:
        return FlipCount(
            outcomes=outcomes,
            flipped=int(np.abs(gaps).sum()),
            gained=int(gaps.sum()),
            allowed=allow_flips(outcomes, adaptation, differs),
        )

    correct = stored.correct
    scored = count(correct.astype(np.int64) - recomputed.correct, correct.size)
    if stored.dense_correct is None or recomputed.dense_correct is None:
        return scored, None
    total = 0 if stored.dense_total is None else int(stored.dense_total.sum())
    return scored, count(stored.dense_correct - recomputed.dense_correct, total)


def other_differences(
    stored: EpisodeRecords, recomputed: EpisodeRecords, exact: bool
) -> str | None:
    """Return what differs beside outcomes; collapsed and non-finite episodes only if `exact`."""
    pairs: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    if stored.dense_total is not None and recomputed.dense_total is not None:
        pairs["dense queries"] = (stored.dense_total, recomputed.dense_total)
    if exact:
        pairs["collapsed episodes"] = (stored.collapsed, recomputed.collapsed)
        pairs["non-finite episodes"] = (stored.finite, recomputed.finite)
    wrong = [name for name, (a, b) in pairs.items() if not np.array_equal(a, b)]
    return f"other {', '.join(wrong)}" if wrong else None
