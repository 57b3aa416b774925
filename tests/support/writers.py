"""What processes do to one model's folder: grow it, die over it, be refused."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import filelock  # noqa: F401 - later, nobody may not read the library
from support import fakes

from fsbench.core import io
from fsbench.core.schema import Result
from fsbench.results.store import ResultStore

NOBODY = 65534
SHARED = 5
"""Shots of the task that two processes write."""


def start(work: Callable[..., object], *arguments: object) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    return process


def open_store(root: Path, shots: int = 1) -> ResultStore:
    return ResultStore(root, fakes.facts(), fakes.dataset(), fakes.episodic(shots))


def grow(root: Path, shots: int, start: int, stop: int) -> Result:
    """Compute these episodes of a task in one block, and add them to its result."""
    return fakes.write(root, shots=shots, index=range(start, stop), block=start)


def write_tasks(root: Path, shots: Iterable[int], half: int) -> None:
    """Compute each task in two halves, and then one half of the next task."""
    for first in (0, 20):
        for k in shots:
            grow(root, k, first, first + 20)
    grow(root, SHARED, half, half + 20)


def die(root: Path, name: str, when: str) -> None:
    """Grow a result, and be killed before a file is begun, before it is there, or before others go.

    name: how the file begins; when: "begin", "end" or "clean".
    """
    real = io.replacing

    def reach(path: Path, now: str) -> None:
        if path.name.startswith(name) and now == when:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def replacing(path: Path) -> Iterator[Path]:
        reach(path, "begin")
        with real(path) as temporary:
            yield temporary
            reach(path, "end")

    io.replacing = replacing
    Path.unlink = lambda path, missing_ok=False: reach(path, "clean")  # type: ignore[method-assign]
    grow(root, 1, 20, 40)


def write_as_nobody(root: Path) -> None:
    """Exit with the number of the error where a write is refused with the path in its message."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    try:
        grow(root, 1, 20, 40)
    except OSError as error:
        os._exit(error.errno or 1 if str(root) in str(error) else 1)
