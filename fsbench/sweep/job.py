"""A job of a sweep, run in a process of its own."""

import os
from abc import abstractmethod
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

from fsbench import data
from fsbench.api.machine import RunContext
from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, raise_on_signals
from fsbench.core.specs import Frozen, SourceSubset
from pretrain.recipes.recipe import Recipe


def read_source(recipe: Recipe, options: SweepOptions) -> data.SourceDataset:
    """Read the images that the recipe trains on, once per process."""
    key = recipe.source, recipe.decoded_size, recipe.source_subset
    return _read_source(*key, options.data, options.cache_folder)


@cache
def _read_source(
    ref: str, size: int, subset: SourceSubset | None, roots: Any, folder: Path
) -> data.SourceDataset:
    return data.load_source(ref, data.DataRoots.parse(roots), folder, size, subset=subset)


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
