"""Many small runs in two processes of one thread each, results in the order of the jobs."""

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
MEMORY, ROOM = "/dev/shm", 2**30
"""Where Linux keeps files in memory, and the bytes to be free there: far more than a run needs."""


def run_jobs(
    one: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    name: str,
    report: Reporter = SILENT,
    unit: str = "runs",
) -> list[_Result]:
    """What `one` gives for every job; a module's own function, and jobs that can be pickled."""
    found = []
    with report.task(name, len(jobs), unit) as advance, start_workers() as pool:
        for result in pool.map(one, jobs):
            found.append(result)
            advance(1)
    return found


@contextmanager
def start_workers() -> Iterator[ProcessPoolExecutor]:
    """Fresh processes; on an error or an interrupt, jobs that have not begun are dropped."""
    pool = ProcessPoolExecutor(PROCESSES, get_context("spawn"), _prepare)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    import torch

    torch.set_num_threads(1)
    if "TMPDIR" not in os.environ:
        tempfile.tempdir = memory_folder()


def memory_folder() -> str | None:
    """A place for scratch folders where the checkpoints of short runs wait for no busy disk.

    None where the system has no such place, or none with room.
    """
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        return MEMORY
    return None
