"""Job that evaluates one backbone on one data set with one head, at all requested shots."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fsbench import backbones
from fsbench.api.analyze import NEEDS_HEAD, missing_part
from fsbench.api.evaluate import run_request
from fsbench.api.request import (
    PROBE_FIELDS,
    EvaluationRequest,
    Models,
    ProbeSettings,
    parse_head_settings,
    parse_probe_settings,
    parse_tasks,
)
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import BackboneFacts, DatasetRecord
from fsbench.core.specs import Frozen, Spec
from fsbench.core.tasks import Options, TaskId
from fsbench.results import ResultStore
from fsbench.sweep import board_results
from fsbench.sweep.file import BackboneBlock, EvaluationBlock, JobKind
from fsbench.sweep.job import Job
from fsbench.sweep.place import Workplace
from fsbench.sweep.training import TrainingJob
from protocols.analyses import AnalysisFile


class TrainedBackbone(Frozen):
    """A backbone that a job of this sweep trains."""

    training: TrainingJob

    @property
    def label(self) -> str:
        return self.training.label

    @property
    def identity(self) -> str:
        """Key of the training."""
        return self.training.key

    @property
    def native(self) -> int:
        return self.training.recipe.input_size

    @property
    def named(self) -> dict[str, str]:
        """What a pattern of entry names may use: pilot, seal-lr=0.2, 0 of pilot-seal-lr=0.2-s0."""
        scale, seed = self.training.recipe.scale, str(self.training.recipe.seed)
        method = self.label.removeprefix(f"{scale}-").removesuffix(f"-s{seed}")
        return {"scale": scale, "method": method, "seed": seed}

    def models(self, place: Workplace) -> Models:
        return Models((f"run:{relative_to_cwd(self.training.folder(place))}",), names=(self.label,))

    def facts(self, place: Workplace) -> BackboneFacts | None:
        """None while it is not trained."""
        if not self.training.done(place):
            return None
        return load_facts(f"run:{relative_to_cwd(self.training.folder(place))}", None, None)

    def lacks(self, analysis: AnalysisFile, place: Workplace) -> str:
        """What it will not have that the analysis needs; empty when it will have all."""
        classifies = self.training.recipe.loader != "episodes"
        return "" if classifies or "head" not in analysis.NEEDS else NEEDS_HEAD

    def is_(self, facts: BackboneFacts) -> bool:
        """Whether a result elsewhere is of this backbone: by recipe and source."""
        digest, known = self.training.recipe.digest(), facts.training
        if facts.recipe_digest != digest or known is None:
            return False
        return known.source_fingerprint == self.training.source_fingerprint


class GivenBackbone(Frozen):
    """A given backbone. weights, native: its weights hash and size (px) as the sweep was read."""

    given: BackboneBlock
    label: str
    weights: str
    native: int

    @property
    def identity(self) -> str:
        return self.weights

    @property
    def named(self) -> dict[str, str]:
        """As of a trained one: its label stands for the method."""
        return {"scale": "given", "method": self.label, "seed": str(self.given.random_init or 0)}

    def models(self, place: Workplace) -> Models:
        given = self.given
        return Models((given.model,), given.arch, given.random_init, (self.label,))

    def facts(self, place: Workplace) -> BackboneFacts | None:
        return load_facts(self.given.model, self.given.arch, self.given.random_init)

    def lacks(self, analysis: AnalysisFile, place: Workplace) -> str:
        return missing_part(self.given.model, self.models(place), None, analysis)

    def is_(self, facts: BackboneFacts) -> bool:
        return facts.weights_hash == self.weights


SweepBackbone = TrainedBackbone | GivenBackbone


def relative_to_cwd(path: Path) -> Path:
    """From where this process stands, if it lies below: results keep the reference."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@cache
def load_facts(ref: str, arch: str | None, random_init: int | None) -> BackboneFacts:
    """Facts of a backbone that does not change while a sweep is planned."""
    return backbones.load(ref, arch=arch, random_init=random_init).facts


class EvaluationJob(Job):
    """tasks: complete ids, all of one data set and adaptation; images: its record for each; asked:
    the block of the sweep file, of which `only`, targets and shots are in `tasks`; entry: that the
    results are for, if any."""

    KIND: ClassVar[JobKind] = "evaluate"
    backbone: SweepBackbone
    tasks: tuple[str, ...]
    images: tuple[DatasetRecord, ...]
    asked: EvaluationBlock
    entry: str | None = None

    @property
    def title(self) -> str:
        first, *others = self.tasks
        more = f" and {len(others)} more" if others else ""
        return f"{self.backbone.label} on {first}{more}"

    @property
    def settings(self) -> Mapping[str, Any]:
        specs = [self.spec(task).digest() for task in self.parsed]
        images = [record.identity for record in self.images]
        wanted = {"episodes": self.request.n_episodes, "limited": bool(self.request.flags)}
        backbone = self.backbone.identity
        return {"backbone": backbone, "specs": specs, "images": images, **wanted}

    @property
    def parsed(self) -> tuple[TaskId, ...]:
        return self.request.tasks

    @cached_property
    def request(self) -> EvaluationRequest:
        return build_request(self.asked, self.tasks)

    def spec(self, task: TaskId) -> Spec:
        return self.request.spec(task, self.backbone.native)

    def wanted(self, task: TaskId) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Episode numbers; None for a probe."""
        return None if task.probe else np.arange(self.request.n_episodes)

    def done(self, place: Workplace) -> bool:
        facts = self.backbone.facts(place)
        if facts is None:
            return False
        store = ResultStore(place.results)
        for task, images in zip(self.parsed, self.images, strict=True):
            cell = store.cell(facts, images, self.spec(task), self.backbone.label)
            try:
                if not cell.complete(self.wanted(task)):
                    return False
            except ValidationFailed:  # of other images or damaged: running the job says so
                return False
        return True

    def run(self, place: Workplace) -> None:
        if self.entry:
            board_results.is_entry_of(
                self.entry, self.backbone, place
            )  # before hours of work, not after
        models = self.backbone.models(place)
        run_request(
            models,
            self.request,
            roots=place.roots,
            output=place.results,
            machine=place.machine,
            yes=True,
        )


def build_request(
    asked: EvaluationBlock, tasks: tuple[str, ...] | None = None
) -> EvaluationRequest:
    """What a block asks for: all its tasks, or these complete ids."""
    options = Options(shots=asked.shots, way=asked.way, heads=asked.adapt, protocol=asked.protocol)
    chosen = parse_tasks(asked.targets, options) if tasks is None else parse_tasks(tasks, Options())
    whole = tasks is None
    used = {task.head or task.probe for task in chosen}
    settings = {n: v for n, v in parse_head_settings(asked.set).items() if whole or n in used}
    return EvaluationRequest(
        tasks=chosen,
        input_size=None if asked.input_size == "native" else int(asked.input_size),
        episodes=asked.episodes,
        limit=asked.limit,
        seed=asked.seed,
        bn_mode=asked.bn_mode if whole or "affine" in used else "eval",
        settings=settings,
        probing=parse_probe_settings(asked.set) if whole else select_probe_settings(asked, chosen),
    )


def select_probe_settings(asked: EvaluationBlock, tasks: tuple[TaskId, ...]) -> ProbeSettings:
    """The settings of probes that these tasks are."""
    given = parse_probe_settings(asked.set).values
    mine = {name for task in tasks if task.probe for name in PROBE_FIELDS[task.probe]}
    return ProbeSettings({name: value for name, value in given.items() if name in mine})
