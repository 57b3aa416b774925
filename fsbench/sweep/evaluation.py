"""Job that evaluates one backbone on one data set with one head, at all requested shots."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fsbench.api.analyze import NEEDS_HEAD, missing_part
from fsbench.api.evaluate import run_request
from fsbench.api.request import EvaluationRequest, Models
from fsbench.core.errors import ValidationFailed
from fsbench.core.progress import SILENT
from fsbench.core.schema import BackboneFacts, DatasetRecord
from fsbench.core.specs import Frozen, Spec
from fsbench.core.tasks import ColumnId, TaskId
from fsbench.results import ResultStore
from fsbench.sweep.file import BackboneBlock, EvaluationBlock, JobKind
from fsbench.sweep.job import Job, Workplace
from fsbench.sweep.training import TrainingJob
from leaderboard.store import Board
from pretrain.recipes.registry import RECIPES
from protocols.analyses import AnalysisFile


@dataclass(frozen=True)
class BoardResult:
    """One result of an entry."""

    entry: str
    backbone: BackboneFacts
    task: TaskId
    spec: str
    images: str
    outcomes: int


@cache
def read_results(board: Path) -> tuple[BoardResult, ...]:
    """Read all results of the board, verified. Raise ValidationFailed for a damaged entry."""
    entries = Board.open(board).entries() if board.is_dir() else []
    return tuple(
        BoardResult(
            entry.name,
            cell.result.backbone,
            cell.result.task,
            cell.result.spec_digest,
            cell.result.dataset.identity,
            cell.result.score.n,
        )
        for entry in entries
        for cell in entry.cells
    )


@cache
def read_board_columns(board: Path) -> frozenset[ColumnId] | None:
    """Return the columns that a board takes; None for all."""
    file = Board.open(board).file
    return None if file.has_extra else frozenset(file.named)


def clear_cache() -> None:
    """Forget what was read; boards may have changed."""
    read_results.cache_clear()
    read_board_columns.cache_clear()


class TrainedBackbone(Frozen):
    """Backbone that a job of this sweep trains."""

    training: TrainingJob

    @property
    def label(self) -> str:
        return self.training.label

    @property
    def identity(self) -> str:
        """Key of the training job."""
        return self.training.key

    @property
    def native(self) -> int:
        return self.training.recipe.input_size

    @property
    def evaluation_size(self) -> int | None:
        return RECIPES.evaluation_size(self.training.recipe.name)

    @property
    def named(self) -> dict[str, str]:
        """Fields of entry name patterns, e.g. pilot, seal-lr=0.2 and 0 of pilot-seal-lr=0.2-s0."""
        scale, seed = self.training.recipe.scale, str(self.training.recipe.seed)
        method = self.label.removeprefix(f"{scale}-").removesuffix(f"-s{seed}")
        return {"scale": scale, "method": method, "seed": seed}

    def models(self, place: Workplace) -> Models:
        return Models((f"run:{relative_to_cwd(self.training.folder(place))}",), names=(self.label,))

    def facts(self, place: Workplace) -> BackboneFacts | None:
        """Return the facts of the backbone; None before it is trained."""
        if not self.training.done(place):
            return None
        return load_facts(BackboneBlock(model=self.models(place).refs[0]))

    def lacks(self, analysis: AnalysisFile, place: Workplace) -> str:
        """Return what the analysis needs and the backbone lacks; empty if nothing."""
        classifies = self.training.recipe.loader != "episodes"
        return "" if classifies or "head" not in analysis.NEEDS else NEEDS_HEAD

    def is_(self, facts: BackboneFacts) -> bool:
        """Return whether these are facts of this backbone, by recipe and source."""
        digest, training = self.training.recipe.digest(), facts.training
        if facts.recipe_digest != digest or training is None:
            return False
        return training.source_fingerprint == self.training.source_fingerprint


class GivenBackbone(Frozen):
    """Backbone that exists already; its identity, input size and the size of its study (px)."""

    block: BackboneBlock
    label: str
    identity: str
    native: int | None
    evaluation_size: int | None = None

    @property
    def named(self) -> dict[str, str]:
        """Fields of entry name patterns; the label replaces the method."""
        return {"scale": "given", "method": self.label, "seed": str(self.block.random_init or 0)}

    def models(self, place: Workplace) -> Models:
        return replace(models_of(self.block), names=(self.label,))

    def facts(self, place: Workplace) -> BackboneFacts | None:
        return load_facts(self.block)

    def lacks(self, analysis: AnalysisFile, place: Workplace) -> str:
        return missing_part(self.block.model, self.models(place), None, analysis)

    def is_(self, facts: BackboneFacts) -> bool:
        return facts.identity == self.identity


SweepBackbone = TrainedBackbone | GivenBackbone


def relative_to_cwd(path: Path) -> Path:
    """Return the path relative to the working directory if it lies below; results record it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@cache
def load_facts(block: BackboneBlock, needs: frozenset[str] = frozenset()) -> BackboneFacts:
    """Load the facts of a backbone, once per process. Raise UsageError if one of `needs` lacks."""
    return models_of(block).load(0, "cpu", SILENT, needs).facts


def models_of(block: BackboneBlock) -> Models:
    """Return the existing backbone of a block."""
    return Models((block.model,), block.arch, block.random_init, features=block.features)


class EvaluationJob(Job):
    """Evaluate one backbone; tasks: complete ids of one data set and head; images: a record each.

    block: block of the sweep file (its targets and shots are in `tasks`); entry: name of the board
    entry that the results are for, if any.
    """

    KIND: ClassVar[JobKind] = "evaluate"
    backbone: SweepBackbone
    tasks: tuple[str, ...]
    images: tuple[DatasetRecord, ...]
    block: EvaluationBlock
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
        counts = {"episodes": self.request.n_episodes, "limited": bool(self.request.flags)}
        backbone = self.backbone.identity
        return {"backbone": backbone, "specs": specs, "images": images, **counts}

    @property
    def parsed(self) -> tuple[TaskId, ...]:
        return self.request.tasks

    @cached_property
    def request(self) -> EvaluationRequest:
        return self.block.request().of_tasks(map(TaskId.parse, self.tasks))

    def spec(self, task: TaskId) -> Spec:
        return self.request.spec(task, self.backbone.native, self.backbone.evaluation_size)

    def column(self, task: TaskId) -> ColumnId:
        """Return the board column of a task."""
        return ColumnId.of(task, self.spec(task))

    def find_entry(self, task: TaskId, place: Workplace) -> str | None:
        """Return the entry with a complete result of a task."""
        if place.board is None:
            return None
        spec = self.spec(task).digest()
        images = self.images[self.parsed.index(task)].identity
        required = 1 if task.probe else self.request.n_episodes
        for cell in read_results(place.board):
            same = (cell.task, cell.spec, cell.images) == (task.in_results, spec, images)
            if same and cell.outcomes >= required and self.backbone.is_(cell.backbone):
                return cell.entry
        return None

    def is_on_board(self, place: Workplace) -> bool:
        """Return whether the board has all results of the job."""
        return all(self.find_entry(task, place) for task in self.parsed)

    def done(self, place: Workplace) -> bool:
        facts = self.backbone.facts(place)
        if facts is None:
            return False
        store = ResultStore(place.results)
        for task, images in zip(self.parsed, self.images, strict=True):
            cell = store.cell(facts, images, self.spec(task), self.backbone.label)
            episodes = None if task.probe else np.arange(self.request.n_episodes)
            try:
                if not cell.complete(episodes):
                    return False
            except ValidationFailed:  # of other images or damaged: running the job says so
                return False
        return True

    def run(self, place: Workplace) -> None:
        if self.entry:
            is_entry_of(self.entry, self.backbone, place)  # before hours of work, not after
        run_request(
            self.backbone.models(place),
            self.request,
            roots=place.roots,
            output=place.results,
            machine=place.machine,
            yes=True,
        )


def is_entry_of(entry: str, backbone: SweepBackbone, place: Workplace) -> bool:
    """Return whether the board has this entry, and it is of this backbone.

    Raises ValidationFailed where its results are of other weights than those of this sweep, which a
    recipe gives on another kind of machine: an entry holds one network.
    """
    if place.board is None:
        return False
    cells = read_results(place.board)
    mine = [c.backbone for c in cells if c.entry == entry and backbone.is_(c.backbone)]
    now = backbone.facts(place)
    others = {facts.identity for facts in mine} - {now.identity if now else ""}
    if others:
        raise ValidationFailed(
            f"the entry {entry} on {place.board} holds results of other weights"
            f" ({', '.join(sorted(other[:12] for other in others))}) of the same recipe",
            fix="put those weights in the place of the run and sweep again, or delete the entry"
            " to have all of its results made anew",
        )
    return bool(mine)
