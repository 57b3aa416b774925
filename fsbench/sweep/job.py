"""A job of a sweep: content-addressed by kind and settings, run in a process of its own."""

import os
import socket
import time
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from fsbench import data
from fsbench.api.machine import RunContext
from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, raise_on_signals
from fsbench.core.schema import Sha256
from fsbench.core.specs import Frozen, SourceSubset, digest
from fsbench.sweep.file import JobKind

if TYPE_CHECKING:
    from fsbench.data import SourceDataset
    from pretrain.recipes.recipe import Recipe


def read_source(recipe: "Recipe", place: SweepOptions) -> "SourceDataset":
    """Read the images that the recipe trains on, once per process."""
    key = recipe.source, recipe.decoded_size, recipe.source_subset
    return _read_source(*key, place.data, place.cache_folder)


@cache
def _read_source(
    ref: str, size: int, subset: SourceSubset | None, roots: Any, folder: Path
) -> "SourceDataset":
    return data.load_source(ref, data.DataRoots.parse(roots), folder, size, subset=subset)


class Job(Frozen):
    """Unit of work that completes as a whole or not at all. title: shown to people."""

    KIND: ClassVar[JobKind]

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Everything that decides the outcome, as JSON values, without names that people chose."""

    @cached_property
    def key(self) -> str:
        """Return the sha-256 of kind and settings, 64 hex digits."""
        return digest({"kind": self.KIND, **self.settings})

    @abstractmethod
    def done(self, place: SweepOptions) -> bool:
        """Return whether the outcome exists in the folders."""

    @abstractmethod
    def run(self, place: SweepOptions) -> None:
        """Compute what is missing; resume after a kill."""


class JobState(Frozen):
    """Last event of a job: running, done or failed. seconds, host, pid: of the work itself."""

    key: Sha256
    kind: JobKind
    title: str
    state: str = "missing"
    since: str = Field("", description="UTC, ISO 8601")
    seconds: float | None = Field(None, ge=0)
    host: str | None = None
    pid: int | None = None
    reason: str = ""

    @classmethod
    def make(cls, job: Job, state: str, **facts: Any) -> Self:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        names = {"key": job.key, "kind": job.KIND, "title": job.title}
        return cls(**names, state=state, since=now, **facts)


def run_job(job: Job, place: SweepOptions) -> JobState:
    """Run the job; return how it ended. SIGTERM lets a training write its checkpoint and then ends
    the process.
    """
    started, failure = time.monotonic(), {}
    RunContext.start(place)
    try:
        with raise_on_signals():
            job.run(place)
    except Stopped as stopped:
        os._exit(stopped.exit_code)
    except (FsbenchError, OSError) as error:
        failure = {"reason": f"{type(error).__name__}: {error}"}
    seconds = round(time.monotonic() - started, 3)
    facts = {"seconds": seconds, "host": socket.gethostname(), "pid": os.getpid(), **failure}
    return JobState.make(job, "failed" if failure else "done", **facts)
