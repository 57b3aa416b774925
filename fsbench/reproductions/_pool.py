"""Run many small jobs in two processes with one thread each."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from fsbench.core.progress import SILENT, Reporter

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")

PROCESSES = 2
MEMORY_FOLDER, FREE_BYTES = "/dev/shm", 2**30
"""Folder that Linux keeps in memory, and the free bytes required there (more than a run needs)."""


def run_jobs(
    function: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    name: str,
    report: Reporter = SILENT,
    unit: str = "runs",
) -> list[_Result]:
    """Return function(job) for every job, in order; function and jobs must be picklable."""
    results = []
    with report.task(name, len(jobs), unit) as advance, start_workers() as pool:
        for result in pool.map(function, jobs):
            results.append(result)
            advance(1)
    return results


@contextmanager
def start_workers() -> Iterator[ProcessPoolExecutor]:
    """Start new processes; on an error or interrupt, cancel the jobs that have not started."""
    pool = ProcessPoolExecutor(PROCESSES, get_context("spawn"), _prepare)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    import torch

    torch.set_num_threads(1)
    if "TMPDIR" not in os.environ:
        tempfile.tempdir = find_memory_folder()


def find_memory_folder() -> str | None:
    """Return a folder in memory for the checkpoints of short runs.

    None if the system has no such folder, or not enough free space in it.
    """
    if os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free >= FREE_BYTES:
        return MEMORY_FOLDER
    return None
