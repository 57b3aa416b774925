"""Worker processes of a sweep, as an executor of `concurrent.futures`."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from fsbench.core.registry import CODE


class Workers(ThreadPoolExecutor):
    """Executor of `count` spawned processes, each a pool of its own with a thread that waits.

    A process that dies therefore fails its own job alone, and every process ends when the sweep
    that started it is gone. gpus: GPUs that the processes share evenly; each sees one; methods:
    references to code of the user, which every process loads first.
    """

    def __init__(self, count: int, gpus: Sequence[str] = (), methods: Sequence[str] = ()) -> None:
        super().__init__(count)
        self.methods = [reference for reference in methods if reference.startswith(CODE)]
        self.other_children = set(multiprocessing.active_children())
        self.pools: SimpleQueue[tuple[ProcessPoolExecutor, str | None]] = SimpleQueue()
        for slot in range(count):
            gpu = gpus[slot % len(gpus)] if gpus else None
            self.pools.put((start_pool(gpu, self.methods), gpu))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function in an idle process. BrokenProcessPool: the process died."""
        return super().submit(self._call, fn, *args, **kwargs)

    def _call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        pool, gpu = self.pools.get()
        try:
            return pool.submit(fn, *args, **kwargs).result()
        except BrokenProcessPool:
            pool = start_pool(gpu, self.methods)
            raise
        finally:
            self.pools.put((pool, gpu))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle processes cleanly; without `wait`, terminate all at once."""
        if not wait:
            for process in set(multiprocessing.active_children()) - self.other_children:
                process.terminate()
        super().shutdown(wait=wait, cancel_futures=cancel_futures)
        idle = []
        with suppress(Empty):
            while True:
                idle.append(self.pools.get_nowait())
        for pool, gpu in idle:
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)
            self.pools.put((pool, gpu))  # so that a call which begins now fails, not waits


def start_pool(gpu: str | None, methods: Sequence[str]) -> ProcessPoolExecutor:
    """Return a pool of one process, which starts with its first job."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, spawn, initializer=start_worker, initargs=(gpu, methods))


def start_worker(gpu: str | None, methods: Sequence[str]) -> None:
    """Set up a worker: ignore Ctrl-C, which the sweep handles; exit when the sweep is killed."""
    from pretrain import METHODS

    for reference in methods:  # jobs refer to its class
        METHODS.add(reference)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=exit_with_parent, daemon=True).start()


def exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def find_gpus(device: str) -> list[str]:
    """Return the GPUs of this machine as CUDA names them; [] where `device` is one, or none."""
    import torch

    if device not in ("auto", "cuda"):
        return []
    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[:count] if visible else [str(gpu) for gpu in range(count)]
