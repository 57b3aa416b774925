"""Worker processes of a sweep, as an executor of `concurrent.futures`."""

import multiprocessing
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from math import ceil
from typing import Any

from fsbench.core.errors import FsbenchError

TRIES = 2
"""Processes that a job gets, one after the death of the other."""


class Workers(ThreadPoolExecutor):
    """Pool of `count` spawned processes, which end when the sweep that started them is gone.

    A thread waits for each process. A job whose process dies runs again in a new one, where a
    training resumes. names: of the GPUs that jobs share; a job sees those that it has taken.
    """

    def __init__(self, count: int, names: Sequence[str] = ()) -> None:
        super().__init__(count)
        self.free = dict.fromkeys(names, 1.0)
        self.changed, self.closed = threading.Condition(), False
        self.idle = defaultdict[str | None, list[ProcessPoolExecutor]](list)
        self.other_children = set(multiprocessing.active_children())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in a process; options as the last argument state its GPUs."""
        return super().submit(self.run, fn, *args, **kwargs)

    def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return what the function does. Raise FsbenchError if its process dies TRIES times."""
        share: float = getattr(args[-1], "gpus", 0) if args else 0
        names = self.take_gpus(share)
        visible = ",".join(names) if self.free else None
        try:
            for _ in range(0 if self.closed else TRIES):
                idle = self.idle[visible]
                process = idle.pop() if idle else start_process(visible)
                call = process.submit(fn, *args, **kwargs)
                if self.closed or not isinstance(call.exception(), BrokenProcessPool):
                    idle.append(process)
                    return call.result()
        finally:
            self.add(names, min(share, 1))
        raise FsbenchError(
            f"the process of the job died {TRIES} times, as it does for want of memory",
            fix="run the command again with fewer --jobs: a training resumes from its checkpoint",
        )

    def take_gpus(self, share: float) -> list[str]:
        """Wait for GPUs with room for a share, and take it from the emptiest ones."""
        if not self.free:
            return []
        with self.changed:
            self.changed.wait_for(lambda: len(self.find_room(share)) == ceil(share))
            names = self.find_room(share)
            self.add(names, -min(share, 1))
        return names

    def find_room(self, share: float) -> list[str]:
        names = [name for name, free in self.free.items() if free >= min(share, 1)]
        return sorted(names, key=lambda name: -self.free[name])[: ceil(share)]

    def add(self, names: Sequence[str], part: float) -> None:
        with self.changed:
            for name in names:
                self.free[name] = round(self.free[name] + part, 6)  # tenths sum to 1
            self.changed.notify_all()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle processes cleanly; without `wait`, terminate all at once."""
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
    """Set up a worker: ignore Ctrl-C, which the sweep handles; exit when the sweep is killed."""
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=exit_with_parent, daemon=True).start()


def exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def find_gpus(device: str) -> list[str]:
    """Return the GPUs of this machine that a device allows, as CUDA names them."""
    import torch

    if not device.startswith(("auto", "cuda")):
        return []
    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",")[:count] if visible else [str(gpu) for gpu in range(count)]
    _, _, index = device.partition(":")
    return names[int(index) :][:1] if index else names
