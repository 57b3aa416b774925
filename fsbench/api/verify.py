"""Verify an entry: run some of its episodes again from the weights and compare every outcome.

Episodes are drawn from the entry's name and a seed that the submitter could not foresee, and come
out of the evaluation itself, in the blocks that they were in, so one environment gives equal bits
(design.md 5).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from fsbench import data
from fsbench.api.estimate import adaptation, block_timer, extraction, refuse_long
from fsbench.api.evaluate import Models, TargetSets, feature_store, inputs_of, on_features
from fsbench.api.machine import Machine, RunContext
from fsbench.api.request import EvaluationRequest
from fsbench.api.rerun import Sample, compare, draw, samples
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureStore
from fsbench.core.errors import CheckpointError, DataError, ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import EpisodicSpec
from fsbench.results.building import SAME_BACKBONE
from leaderboard.board import badges
from leaderboard.board.badges import Badge
from leaderboard.board.board import Board, Entry
from leaderboard.submission.chain import build_chain
from protocols import EPISODIC

SEEDS = 2**31


@dataclass(frozen=True)
class Check:
    """What to run again: so many episodes of the cells that the task ids name, or of all.

    seed: None lets chance say; the badge states it.
    """

    episodes: int = 20
    tasks: tuple[str, ...] = ()
    seed: int = field(default_factory=lambda: secrets.randbelow(SEEDS))


def verify(
    board: Path,
    name: str,
    models: Models,
    check: Check,
    *,
    roots: Sequence[str] = (),
    machine: Machine | None = None,
    yes: bool = False,
    report: Reporter = SILENT,
) -> Badge:
    """Run episodes of an entry again and store the badge that says what came out.

    machine: without threads or a batch size it takes the entry's. Raises CheckpointError for other
    weights and DataError for other images, which say nothing of the entry: no badge is stored then.
    UsageError as `evaluate`, when it would take over an hour without `yes`.
    """
    entry = Board.open(board).entry(name)
    machine = alike(machine or Machine(), entry)
    drawn = draw(samples(entry.cells, check.tasks), check.episodes, name, check.seed)
    clock = machine.start()
    backbone = models.load(0, clock.device, report)
    require_weights(entry, backbone.facts)
    request = EvaluationRequest(tuple(dict.fromkeys(sample.task for sample in drawn)))
    targets = TargetSets(request, data.DataRoots.parse(roots), machine.cache, report)
    require_images(drawn, targets)
    rerun = Rerun(backbone, targets, feature_store(machine, clock.device, report), clock, report)
    rerun.refuse_long(drawn, yes)
    badge = badge_of(entry, check, drawn, rerun)
    store(board, name, badge)
    return badge


@dataclass(frozen=True, eq=False)
class Rerun:
    """A backbone and the images, ready to run episodes."""

    backbone: Backbone
    targets: TargetSets
    features: FeatureStore
    clock: RunContext
    report: Reporter

    def refuse_long(self, drawn: Sequence[Sample], yes: bool) -> None:
        """Raises UsageError when it would take over an hour, unless `yes`."""
        images: dict[int, int] = {}
        for sample in {(s.task.dataset, s.spec.image): s for s in drawn}.values():
            image, fingerprint = sample.spec.image, sample.cell.result.dataset.fingerprint
            held = self.features.holds(self.backbone, image, fingerprint)
            if on_features(sample.task) and not held:
                n = len(self.targets.of(sample.task))
                images[image.input_size] = images.get(image.input_size, 0) + n
        timed: dict[EpisodicSpec, int] = {}
        for sample in (s for s in drawn if block_timer(s.spec)):
            timed[sample.spec] = timed.get(sample.spec, 0) + len(self.blocks(sample))
        device = self.clock.device
        parts = extraction(images, self.backbone, device) + adaptation(timed, self.backbone, device)
        refuse_long(parts, self.backbone.facts.ref, yes, self.report)

    def blocks(self, sample: Sample) -> list[int]:
        """The blocks that the drawn episodes lie in."""
        protocol = EPISODIC.load(sample.spec.adaptation)
        size = protocol.block_size(sample.spec, self.backbone.facts.feature_dim)
        return sorted({episode // size for episode in sample.drawn})

    def episodes(self, sample: Sample) -> EpisodeRecords:
        """The drawn episodes and all that the entry holds of their blocks, run again."""
        protocol, device = EPISODIC.load(sample.spec.adaptation), self.clock.device
        given = inputs_of(
            self.backbone, sample.task, sample.spec.image, self.targets, self.features, device
        )
        parts = [protocol.evaluate_block(given, sample.spec, b) for b in self.blocks(sample)]
        found = concatenate(parts)
        return found.take(np.isin(found.index, sample.records.index))


def alike(machine: Machine, entry: Entry) -> Machine:
    """With the entry's batch size, and its threads as far as they are here, where none is set."""
    made = entry.cells[0].result.provenance
    threads = machine.threads or min(made.threads, os.cpu_count() or 1)
    return replace(machine, threads=threads, batch_size=machine.batch_size or made.batch_size)


def require_weights(entry: Entry, facts: BackboneFacts) -> None:
    """Raises CheckpointError naming the facts in which the backbone is another one."""
    mine = entry.cells[0].result.backbone
    wrong = [name for name in SAME_BACKBONE if getattr(mine, name) != getattr(facts, name)]
    if wrong:
        listed = "; ".join(f"{n} {getattr(facts, n)}, entry {getattr(mine, n)}" for n in wrong)
        raise CheckpointError(
            f"{facts.ref} is not the backbone of '{entry.name}': {listed}",
            fix="give the weights that the entry was made with (-m, --arch, --random-init); random "
            "ones differ between kinds of CPU",
        )


def require_images(drawn: Sequence[Sample], targets: TargetSets) -> None:
    """Raises DataError naming a data set whose images or groups are not those of the entry."""
    for sample in drawn:
        here, there = targets.record(sample.task), sample.cell.result.dataset
        if here.identity != there.identity:
            raise DataError(
                f"{there.name}: these images have the fingerprint {here.identity[:12]}, the "
                f"entry was made on {there.identity[:12]}",
                fix="give the same copy of the data set with --data, or leave it out with -t",
            )


def badge_of(entry: Entry, check: Check, drawn: Sequence[Sample], rerun: Rerun) -> Badge:
    """Run and compare cell by cell."""
    environment = rerun.clock.environment
    found = []
    with rerun.report.task(f"verify {entry.name}", len(drawn), "cells") as advance:
        for sample in drawn:
            found.append(compare(sample, rerun.episodes(sample), environment))
            advance(1)
    columns = {str(cell.result.column) for cell in entry.cells}
    made = rerun.clock.provenance()
    return Badge(
        chain=build_chain(entry.cells).end,
        date=rerun.clock.started,
        environment={**environment, "fsbench": made.fsbench, "commit": made.git_commit or "none"},
        seed=check.seed,
        cells=tuple(found),
        not_verified=tuple(sorted(columns - {cell.cell for cell in found})),
    )


def store(board: Path, name: str, badge: Badge) -> Path:
    """Raises ValidationFailed when the entry was replaced while its episodes ran."""
    held = Board.open(board)
    with held.lock():
        if build_chain(held.entry(name).cells).end != badge.chain:
            raise ValidationFailed(
                f"'{name}' holds other results by now", fix="verify the new ones"
            )
        return badges.store(board / name, badge)
