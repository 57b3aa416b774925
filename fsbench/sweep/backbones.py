"""Backbones of a sweep: runs that it trains, and backbones that exist already."""

import re
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from fsbench.api.analyze import NEEDS_HEAD, missing_part
from fsbench.api.options import Machine, ModelOptions, SweepOptions
from fsbench.api.pretrain import name_run
from fsbench.api.request import parse_models
from fsbench.backbones.sources.run import RECORD, RunRecord, read_run
from fsbench.core import process
from fsbench.core.distributed import launch_ranks
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import Frozen
from fsbench.results.names import safe_name
from fsbench.sweep.job import Job, UserMethods, read_source, run_rank
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import train_recipe
from protocols.analyses import AnalysisFile

Sizes = tuple[int | None, int | None]
"""Side (px) of the images in training, and in an evaluation if that is stated."""


class TrainingJob(Job):
    """A run that the sweep trains; recipe: as fitted to the source (pretrain/recipes/recipe.py)."""

    KIND: ClassVar = "pretrain"
    share: str = "pretrain"
    recipe: Recipe

    @cached_property
    def title(self) -> str:
        return name_run(self.recipe)

    @cached_property
    def plain(self) -> Recipe:
        """The recipe that tells its cost: without methods, of a meta-learner itself; at seed 0."""
        is_meta = self.recipe.loader == "episodes"
        plain = self.recipe if is_meta else registry.control_recipe(self.recipe)
        return plain.replace({"seed": 0})

    @cached_property
    def sizes(self) -> Sizes:
        return self.recipe.input_size, registry.evaluation_size(self.recipe.name)

    def folder(self, options: SweepOptions) -> Path:
        return options.output / "runs" / self.title

    def record(self, options: SweepOptions) -> RunRecord | None:
        """Return the record of the finished run; None while its folder has none of this run."""
        path = self.folder(options) / RECORD
        if not path.is_file():
            return None
        record = _read_once(path.parent, path.stat().st_mtime_ns)
        return record if self.is_trained_so(record, options) else None

    def done(self, options: SweepOptions) -> bool:
        """Return whether the folder has this run; `run` refuses a folder with another one."""
        return self.record(options) is not None

    def run(self, options: SweepOptions) -> None:
        if options.gpus > 1:
            chosen = UserMethods(options.method), self, replace(options, gpus=1)
            launch_ranks(int(options.gpus), run_rank, *chosen)
            return
        source, folder = read_source(self.recipe, options), self.folder(options)
        train_recipe(self.recipe, source, folder, device=process.resolve_device(options.device))

    def models(self, options: SweepOptions) -> ModelOptions:
        """Return the run as a model to evaluate; below the working directory its path is relative,
        since results record it."""
        folder, here = self.folder(options), Path.cwd()
        folder = folder.relative_to(here) if folder.is_relative_to(here) else folder
        return ModelOptions((f"run:{folder}",), name=self.title)

    def missing_part(self, analysis: AnalysisFile) -> str:
        """Return what the analysis needs and the backbone lacks; empty if nothing."""
        needs_head = "head" in analysis.NEEDS
        return NEEDS_HEAD if needs_head and self.recipe.loader == "episodes" else ""

    def has_facts(self, facts: BackboneFacts, options: SweepOptions) -> bool:
        """Return whether these are facts of the run, which may be deleted, with plain features."""
        record = self.record(options)
        weights = facts.weights_hash if record is None else record.weights_hash
        return facts.identity == weights and self.is_trained_so(facts, options)

    def is_trained_so(self, facts: BackboneFacts | RunRecord, options: SweepOptions) -> bool:
        """Return whether a network is of this recipe and source."""
        trained_on = facts.training and facts.training.source_fingerprint
        is_same = facts.recipe_digest == self.recipe.digest()
        return is_same and trained_on == read_source(self.recipe, options).fingerprint


class GivenBackbone(Frozen):
    """A backbone that exists already; model: the options of this one; title: its name."""

    model: ModelOptions
    title: str
    loaded: BackboneFacts

    @property
    def sizes(self) -> Sizes:
        return self.loaded.input_size, self.loaded.evaluation_size

    def done(self, options: SweepOptions) -> bool:
        """Return True: it exists."""
        return True

    def models(self, options: SweepOptions) -> ModelOptions:
        return replace(self.model, name=self.title)

    def missing_part(self, analysis: AnalysisFile) -> str:
        (model,) = parse_models(self.model)
        return missing_part(model, None, analysis)

    def has_facts(self, facts: BackboneFacts, options: SweepOptions) -> bool:
        return facts.identity == self.loaded.identity


SweepBackbone = TrainingJob | GivenBackbone


def name_entry(backbone: SweepBackbone) -> str:
    """Return the name of the entry of a backbone, which is that of its recipe without the seed."""
    return safe_name(re.sub(r"-s\d+$", "", backbone.title))


@lru_cache(maxsize=8)
def _read_once(folder: Path, time: int) -> RunRecord:
    """Read the record of a finished run until it changes: every evaluation of it asks."""
    return read_run(folder)


def load_options(backbone: SweepBackbone, options: SweepOptions) -> dict[str, Any]:
    """Return the options of a backbone and of the machine, for work on it."""
    machine = {name: getattr(options, name) for name in Machine.declared()}
    return {**vars(backbone.models(options)), **machine, "yes": True}
