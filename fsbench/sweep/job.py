"""A job of a sweep, run in a process of its own."""

import os
import platform
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Self

from fsbench.api.machine import RunContext, progress_reporter
from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, free_gpu_memory, raise_on_signals
from fsbench.core.specs import Frozen
from fsbench.core.workers import set_up_worker
from fsbench.data import DataRoots, SourceDataset
from fsbench.data.loading import list_source, load_source
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import load_code
from pretrain.training.cost import outline_source

load_once, list_once = cache(load_source), cache(list_source)
parse_once: Callable[[Any], DataRoots] = cache(DataRoots.parse)


def read_source(recipe: Recipe, options: SweepOptions) -> SourceDataset:
    """Decode the images that the recipe trains on, once per process."""
    pixels = recipe.decoded_size, progress_reporter(options.progress), recipe.source_subset
    return load_once(recipe.source, parse_once(options.data), options.cache_folder, *pixels)


def read_outline(recipe: Recipe, options: SweepOptions) -> SourceDataset:
    """List the images that the recipe trains on, once per process; decode none."""
    listing = list_once(recipe.source, parse_once(options.data), options.cache_folder)
    return outline_source(recipe, listing)


class Job(Frozen):
    """Unit of work that completes as a whole or not at all.

    title: shown to people; key: equal for jobs of one sweep with the same outcome; share: the field
    of `GpuShares` that states its GPUs, empty for none.
    """

    KIND: ClassVar[str]
    share: str = ""

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


class UserMethods(tuple[str, ...]):
    """References to code of the user, which loads it: also where it is unpickled, before a job."""

    def __new__(cls, references: Sequence[str]) -> Self:
        for reference in references:
            load_code(reference)
        return super().__new__(cls, references)

    def __reduce__(self) -> tuple[Any, ...]:
        return UserMethods, (tuple(self),)


def run_job(methods: UserMethods, job: Job, options: SweepOptions) -> str:
    """Run the job; return why it failed, nothing if it is done.

    SIGTERM lets a training write its checkpoint and then ends the process.
    """
    try:
        if not options.output.is_dir():
            where, fix = platform.node(), "put the output on a file system that all nodes share"
            raise FsbenchError(f"{where} does not see {options.output}", fix=fix)
        RunContext.start(options)
        with raise_on_signals():
            job.run(options)
    except Stopped as stopped:
        os._exit(stopped.exit_code)
    except (FsbenchError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        free_gpu_memory()
    return ""


def run_rank(methods: UserMethods, job: Job, options: SweepOptions) -> None:
    """Run one rank of a job; it ends with the process that started it. Raise FsbenchError."""
    set_up_worker()
    if reason := run_job(methods, job, options):
        raise FsbenchError(reason)
