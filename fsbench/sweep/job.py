"""A job of a sweep: content-addressed by kind and settings, run in a process of its own."""

from __future__ import annotations

import os
import socket
import time
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fsbench.core.canonical import digest
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.process import Stopped, handled
from fsbench.core.specs import Frozen
from fsbench.sweep.file import JobKind
from fsbench.sweep.place import Workplace

if TYPE_CHECKING:
    from fsbench.sweep.place import Workplace


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

    key: str
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
        with handled():
            job.run(place)
    except Stopped as stopped:
        os._exit(stopped.exit_code)
    except (FsbenchError, OSError) as error:
        reason, wrong = f"{type(error).__name__}: {error}", isinstance(error, UsageError)
    seconds = round(time.monotonic() - started, 3)
    return JobOutcome(job.key, reason, seconds, socket.gethostname(), os.getpid(), wrong)
