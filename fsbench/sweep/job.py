"""A job of a sweep: content-addressed by kind and settings, run in a process of its own."""

import os
import socket
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fsbench import data
from fsbench.api.machine import Machine
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.process import Stopped, raise_on_signals
from fsbench.core.specs import Frozen, SourceSubset, digest
from fsbench.sweep.file import JobKind

if TYPE_CHECKING:
    from fsbench.data import SourceDataset
    from pretrain.recipes.recipe import Recipe


@dataclass(frozen=True)
class Workplace:
    """All paths are absolute: jobs may run anywhere that sees them.

    runs/, results/ and jobs/ lie in `output`. findings: of analyses, whose records count
    as done where the run is gone; by default with the results. roots: as --data; threads: of torch.
    """

    output: Path
    cache: Path
    roots: tuple[str, ...] = ()
    board: Path | None = None
    findings: Path | None = None
    device: str = "auto"
    threads: int = 1
    workers: int = 2

    @property
    def machine(self) -> Machine:
        return Machine(self.device, self.threads, self.workers, cache=self.cache)

    @property
    def results(self) -> Path:
        return self.output / "results"

    @property
    def analyses(self) -> Path:
        return self.findings or self.results

    def source(self, recipe: "Recipe") -> "SourceDataset":
        """Read the images that the recipe trains on, once per process."""
        key = recipe.source, recipe.decoded_size, recipe.source_subset
        return _source(*key, self.roots, self.cache)


@cache
def _source(
    ref: str, size: int, subset: SourceSubset | None, roots: tuple[str, ...], folder: Path
) -> "SourceDataset":
    return data.load_source(ref, data.DataRoots.parse(roots), folder, size, subset=subset)


def absolute_roots(roots: Sequence[str]) -> tuple[str, ...]:
    """Return the values of --data and FSBENCH_DATA with absolute folders."""
    values = [*roots, *filter(None, os.environ.get("FSBENCH_DATA", "").split(os.pathsep))]
    return tuple(_absolute(value) for value in values)


def _absolute(value: str) -> str:
    name, equals, folder = value.partition("=")
    if not equals or Path(value).is_dir():
        return str(Path(value).expanduser().absolute())
    return f"{name}={Path(folder).expanduser().absolute()}"


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
    def done(self, place: Workplace) -> bool:
        """Return whether the outcome exists in the folders."""

    @abstractmethod
    def run(self, place: Workplace) -> None:
        """Compute what is missing; resume after a kill."""


class JobOutcome(NamedTuple):
    """Outcome of an attempt. reason: why it failed, or ''; wrong: the request itself is wrong, so a
    retry would fail too.
    """

    reason: str = ""
    seconds: float | None = None
    host: str | None = None
    pid: int | None = None
    wrong: bool = False


def run_job(job: Job, place: Workplace) -> JobOutcome:
    """Run the job. A failure with a reason is an outcome; SIGTERM lets a training write its
    checkpoint and then ends the process.
    """
    started, reason, wrong = time.monotonic(), "", False
    place.machine.start()
    try:
        with raise_on_signals():
            job.run(place)
    except Stopped as stopped:
        os._exit(stopped.exit_code)
    except (FsbenchError, OSError) as error:
        reason, wrong = f"{type(error).__name__}: {error}", isinstance(error, UsageError)
    seconds = round(time.monotonic() - started, 3)
    return JobOutcome(reason, seconds, socket.gethostname(), os.getpid(), wrong)
