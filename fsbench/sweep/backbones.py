"""Backbones of a sweep: runs that it trains, and backbones that exist already."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout

from fsbench.api.analyze import NEEDS_HEAD, missing_part
from fsbench.api.pretrain import label
from fsbench.api.request import Models
from fsbench.core import process
from fsbench.core.progress import SILENT
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import Frozen
from fsbench.sweep.file import BackboneBlock, JobKind
from fsbench.sweep.job import Job, Workplace
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.training import run_folder
from pretrain.training.loop import train_recipe
from protocols.analyses import AnalysisFile

PATIENCE = 60.0
"""Seconds that a job waits for the lock of its folder."""


class TrainingJob(Job):
    """A run that the sweep trains; recipe: as fitted to the source (pretrain/recipes/recipe.py)."""

    KIND: ClassVar[JobKind] = "pretrain"
    recipe: Recipe
    source_fingerprint: str

    @property
    def label(self) -> str:
        return label(self.recipe)

    @property
    def title(self) -> str:
        return self.label

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"recipe": self.recipe.digest(), "source": self.source_fingerprint}

    @property
    def identity(self) -> str:
        return self.key

    @property
    def native(self) -> int:
        return self.recipe.input_size

    @property
    def evaluation_size(self) -> int | None:
        return registry.evaluation_size(self.recipe.name)

    @property
    def name_fields(self) -> dict[str, str]:
        """Fields of entry name patterns, e.g. pilot, seal-lr=0.2 and 0 of pilot-seal-lr=0.2-s0."""
        scale, seed = self.recipe.scale, str(self.recipe.seed)
        method = self.label.removeprefix(f"{scale}-").removesuffix(f"-s{seed}")
        return {"scale": scale, "method": method, "seed": seed}

    def folder(self, place: Workplace) -> Path:
        return place.output / "runs" / self.label

    def done(self, place: Workplace) -> bool:
        """Return whether the folder holds this run; `run` refuses a folder with another one."""
        folder = self.folder(place)
        if not run_folder.is_finished(folder):
            return False
        record = json.loads((folder / "run.json").read_text(encoding="utf8"))
        expected = (self.recipe.digest(), self.source_fingerprint)
        return (record.get("recipe_digest"), record.get("source_fingerprint")) == expected

    def run(self, place: Workplace) -> None:
        source, folder = place.source(self.recipe), self.folder(place)
        wait_for_folder(folder)
        train_recipe(self.recipe, source, folder, device=process.resolve_device(place.device))

    def models(self, place: Workplace) -> Models:
        """Return the run as models to evaluate; below the working directory its path is relative,
        since results record it."""
        folder, here = self.folder(place), Path.cwd()
        folder = folder.relative_to(here) if folder.is_relative_to(here) else folder
        return Models((f"run:{folder}",), name=self.label)

    def facts(self, place: Workplace) -> BackboneFacts | None:
        """Return the facts of the backbone; None before it is trained."""
        if not self.done(place):
            return None
        return load_facts(BackboneBlock(model=self.models(place).refs[0]))

    def missing_part(self, analysis: AnalysisFile, place: Workplace) -> str:
        """Return what the analysis needs and the backbone lacks; empty if nothing."""
        classifies = self.recipe.loader != "episodes"
        return "" if classifies or "head" not in analysis.NEEDS else NEEDS_HEAD

    def has_facts(self, facts: BackboneFacts) -> bool:
        """Return whether these are facts of this backbone, by recipe and source."""
        trained = facts.recipe_digest == self.recipe.digest() and facts.training is not None
        return trained and facts.training.source_fingerprint == self.source_fingerprint  # type: ignore[union-attr]


def wait_for_folder(folder: Path) -> None:
    """Wait until no worker trains in the folder; a worker whose node died may take a moment.

    Returns in any case; `pretrain` refuses a folder that is still taken.
    """
    if folder.is_dir():
        with suppress(Timeout), FileLock(folder / ".lock", timeout=PATIENCE):
            pass


class GivenBackbone(Frozen):
    block: BackboneBlock
    label: str
    loaded: BackboneFacts

    @property
    def identity(self) -> str:
        return self.loaded.identity

    @property
    def native(self) -> int | None:
        return self.loaded.input_size

    @property
    def evaluation_size(self) -> int | None:
        return self.loaded.evaluation_size

    @property
    def name_fields(self) -> dict[str, str]:
        """Fields of entry name patterns; the label replaces the method."""
        return {"scale": "given", "method": self.label, "seed": str(self.block.random_init or 0)}

    def models(self, place: Workplace) -> Models:
        return replace(models_of(self.block), name=self.label)

    def facts(self, place: Workplace) -> BackboneFacts | None:
        return self.loaded

    def missing_part(self, analysis: AnalysisFile, place: Workplace) -> str:
        return missing_part(self.block.model, self.models(place), None, analysis)

    def has_facts(self, facts: BackboneFacts) -> bool:
        return facts.identity == self.identity


SweepBackbone = TrainingJob | GivenBackbone


@cache
def load_facts(block: BackboneBlock, needs: frozenset[str] = frozenset()) -> BackboneFacts:
    """Load the facts of a backbone, once per process. Raise UsageError if one of `needs` lacks."""
    return models_of(block).load(0, "cpu", SILENT, needs).facts


def models_of(block: BackboneBlock) -> Models:
    return Models((block.model,), block.arch, block.random_init, features=block.features)
