"""Processes that work for another one, as an executor of `concurrent.futures`."""

import multiprocessing
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from fsbench.core.errors import FsbenchError

TRIES = 2
"""Processes that a call gets, one after the death of the other."""


class Workers(ThreadPoolExecutor):
    """Pool of `count` spawned processes, which end when the process that started them is gone.

    A thread waits for each process. A call whose process dies runs again in a new one, where a
    training resumes. A process sees the GPUs that the options of its calls name. It ends after an
    exception: where CUDA has failed once, it fails for all that follows in the process.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.closed, self.lock = False, threading.Lock()
        self.idle = defaultdict[str | None, list[ProcessPoolExecutor]](list)
        self.other_children = set(multiprocessing.active_children())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in a process. The last argument may be options, which name its GPUs."""
        return super().submit(self.run, fn, *args, **kwargs)

    def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return what the function does. Raise FsbenchError if its process dies TRIES times."""
        visible: str | None = getattr(args[-1], "visible", None) if args else None
        for _ in range(TRIES):
            idle = self.idle[visible]
            with self.lock:  # no process starts once the pool is closed
                if self.closed:
                    raise CancelledError
                process = idle.pop() if idle else start_process(visible)
                call = process.submit(fn, *args, **kwargs)
            if (error := call.exception()) is None:
                idle.append(process)
            else:
                process.shutdown()
            if self.closed or not isinstance(error, BrokenProcessPool):
                return call.result()
        raise FsbenchError(
            f"the process of the job died {TRIES} times, as it does for want of memory",
            fix="run the command again with fewer --jobs",
        )

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """End idle processes cleanly; after an error terminate all."""
        self.shutdown(wait=kind is None, cancel_futures=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle processes cleanly; without `wait`, terminate all at once."""
        with self.lock:
            self.closed = True
        if not wait:
            for process in set(multiprocessing.active_children()) - self.other_children:
                process.terminate()
        super().shutdown(wait=wait, cancel_futures=cancel_futures)
        for pool in (pool for pools in self.idle.values() for pool in pools):
            pool.shutdown(wait=wait)


def start_process(gpus: str | None) -> ProcessPoolExecutor:
    """Return a pool of one process. gpus: those that it sees; None for all."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, spawn, initializer=set_up_worker, initargs=(gpus,))


def set_up_worker(gpus: str | None = None) -> None:
    """Set up a worker: ignore Ctrl-C, which its parent handles; exit when that is killed."""
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=exit_with_parent, daemon=True).start()


def exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
