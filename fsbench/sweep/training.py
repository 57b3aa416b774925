"""Jobs that train: a run, and a round 0 that several runs share."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout

from fsbench.api.pretrain import label
from fsbench.core import process
from fsbench.sweep.file import JobKind
from fsbench.sweep.job import Job, Workplace
from pretrain.recipes.recipe import Recipe
from pretrain.training import first_round, run_folder
from pretrain.training.loop import train_recipe

PATIENCE = 60.0
"""Seconds that a job waits for the lock of its folder."""


class _Trains(Job):
    """recipe: as fitted to the source (pretrain/recipes/recipe.py)."""

    recipe: Recipe
    source_fingerprint: str

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"recipe": self.recipe.digest(), "source": self.source_fingerprint}

    @property
    def label(self) -> str:
        return label(self.recipe)


class RoundZeroJob(_Trains):
    """Train the round 0 of a control; recipe: the control."""

    KIND: ClassVar[JobKind] = "round"

    @property
    def title(self) -> str:
        return f"round 0 of {self.label}"

    def folder(self, place: Workplace) -> Path:
        return place.output / "rounds" / self.key[:16]

    def done(self, place: Workplace) -> bool:
        return first_round.has_ended(self.folder(place))

    def run(self, place: Workplace) -> None:
        source, device = place.source(self.recipe), process.resolve_device(place.device)
        wait_for_folder(self.folder(place))
        first_round.train_first_round(self.recipe, source, self.folder(place), device=device)


class TrainingJob(_Trains):
    """Train a run. trunk: shared round 0 to start from; it changes no bit of the run."""

    KIND: ClassVar[JobKind] = "pretrain"
    trunk: RoundZeroJob | None = None

    @property
    def title(self) -> str:
        return self.label

    def folder(self, place: Workplace) -> Path:
        return place.run(self.label)

    def started(self, place: Workplace) -> bool:
        """Return whether the run has started, so that it needs no round 0."""
        return first_round.has_started(self.folder(place))

    def done(self, place: Workplace) -> bool:
        folder = self.folder(place)
        return run_folder.is_finished(folder) and self.same(folder)

    def same(self, folder: Path) -> bool:
        """Return whether the folder holds this run; `run` refuses another one."""
        facts = json.loads((folder / "run.json").read_text(encoding="utf8"))
        ours = (self.recipe.digest(), self.source_fingerprint)
        return (facts.get("recipe_digest"), facts.get("source_fingerprint")) == ours

    def run(self, place: Workplace) -> None:
        source, folder = place.source(self.recipe), self.folder(place)
        wait_for_folder(folder)
        if self.trunk and not self.started(place):
            first_round.start_from_first_round(
                self.recipe, source, self.trunk.folder(place), folder
            )
        train_recipe(self.recipe, source, folder, device=process.resolve_device(place.device))


def wait_for_folder(folder: Path) -> None:
    """Wait until no worker trains in the folder; a worker whose node died may take a moment.

    Returns in any case; `pretrain` refuses a folder that is still taken.
    """
    if not folder.is_dir():
        return
    with suppress(Timeout), FileLock(folder / ".lock", timeout=PATIENCE):
        pass
