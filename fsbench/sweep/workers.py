"""Worker processes of a sweep, as an executor of `concurrent.futures`.

A slot is a pool of one spawned process: a process that dies fails its own job alone, and every
process ends when the sweep that started it is gone.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from typing import Any


class Workers(Executor):
    """Executor of `count` processes. gpus: GPUs that they share evenly; each process sees one."""

    def __init__(self, count: int, gpus: Sequence[str] = ()) -> None:
        self.gpus = gpus
        self.other_children = set(multiprocessing.active_children())
        self.pools = [self.start_pool(slot) for slot in range(count)]
        self.idle: SimpleQueue[int] = SimpleQueue()
        for slot in range(count):
            self.idle.put(slot)
        self.threads = ThreadPoolExecutor(count)

    def start_pool(self, slot: int) -> ProcessPoolExecutor:
        """Return a pool of one process, which starts with its first job."""
        gpu = self.gpus[slot % len(self.gpus)] if self.gpus else None
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, spawn, initializer=start_worker, initargs=(gpu,))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function in an idle process. BrokenProcessPool: the process died."""
        return self.threads.submit(self._call, fn, *args, **kwargs)

    def _call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        slot = self.idle.get()
        try:
            return self.pools[slot].submit(fn, *args, **kwargs).result()
        except BrokenProcessPool:
            self.pools[slot] = self.start_pool(slot)
            raise
        finally:
            self.idle.put(slot)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle processes cleanly; without `wait`, terminate all at once."""
        if not wait:
            for process in set(multiprocessing.active_children()) - self.other_children:
                process.terminate()
        for executor in (self.threads, *self.pools):
            executor.shutdown(wait=wait, cancel_futures=cancel_futures)


def start_worker(gpu: str | None) -> None:
    """Set up a worker: ignore Ctrl-C, which the sweep handles; exit when the sweep is killed."""
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
