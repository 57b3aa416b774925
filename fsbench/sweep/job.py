"""A job of a sweep, run in a process of its own."""

import os
from abc import abstractmethod
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

from fsbench.api.machine import RunContext, progress_reporter
from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, raise_on_signals
from fsbench.core.specs import Frozen
from fsbench.data import DataRoots, SourceDataset
from fsbench.data.loading import list_source, load_source
from fsbench.data.source import SourceListing
from pretrain.recipes.recipe import Recipe
from pretrain.training.cost import outline_source


def read_source(recipe: Recipe, options: SweepOptions) -> SourceDataset:
    """Decode the images that the recipe trains on, once per process."""
    pixels = recipe.decoded_size, progress_reporter(options.progress), recipe.source_subset
    return _load_source(recipe.source, options.data, options.cache_folder, *pixels)


def read_outline(recipe: Recipe, options: SweepOptions) -> SourceDataset:
    """List the images that the recipe trains on, once per process; decode none."""
    return outline_source(recipe, _list_source(recipe.source, options.data, options.cache_folder))


@cache
def _list_source(ref: str, roots: Any, folder: Path) -> SourceListing:
    return list_source(ref, DataRoots.parse(roots), folder)


@cache
def _load_source(ref: str, roots: Any, folder: Path, *others: Any) -> SourceDataset:
    return load_source(ref, DataRoots.parse(roots), folder, *others)


class Job(Frozen):
    """Unit of work that completes as a whole or not at all.

    title: shown to people; key: equal for jobs of one sweep with the same outcome.
    """

    KIND: ClassVar[str]

    @property
    @abstractmethod
    def title(self) -> str: ...

    @cached_property
    def key(self) -> str:
        return self.title

    @abstractmethod
    def done(self, options: SweepOptions) -> bool:
        """Return whether the outcome exists in the folders."""

    @abstractmethod
    def run(self, options: SweepOptions) -> None:
        """Compute what is missing; resume after a kill."""


def run_job(job: Job, options: SweepOptions) -> str:
    """Run the job; return why it failed, nothing if it is done.

    SIGTERM lets a training write its checkpoint and then ends the process.
    """
    RunContext.start(options)
    try:
        with raise_on_signals():
            job.run(options)
    except Stopped as stopped:
        os._exit(stopped.exit_code)
    except (FsbenchError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
