"""What runs jobs for the scheduler."""

from __future__ import annotations

from typing import Protocol

from fsbench.sweep.job import Job
from fsbench.sweep.work import Outcome


class Engine(Protocol):
    """Takes jobs and says how they ended; knows nothing of what they are or need."""

    name: str

    def takes(self, job: Job) -> bool:
        """Whether it would start the job at once."""

    def start(self, job: Job) -> None:
        """Start a job that it takes."""

    def wait(self) -> list[Outcome]:
        """Outcomes of the jobs that ended; blocks until there is one."""

    def close(self) -> None:
        """End everything that still runs."""
