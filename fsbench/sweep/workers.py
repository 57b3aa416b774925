"""Worker processes of a sweep, as an executor of `concurrent.futures`."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.queues import SimpleQueue

from fsbench.core.registry import CODE
from pretrain import METHODS


class Workers(ProcessPoolExecutor):
    """Pool of `count` spawned processes, which end when the sweep that started them is gone.

    A process that dies ends the pool: the others get SIGTERM, and a training writes its checkpoint.
    gpus: GPUs that the processes share evenly; each sees one; methods: references to code of the
    user, which every process loads first.
    """

    def __init__(self, count: int, gpus: Sequence[str] = (), methods: Sequence[str] = ()) -> None:
        spawn = multiprocessing.get_context("spawn")
        slots: SimpleQueue[str | None] = spawn.SimpleQueue()
        for slot in range(count):
            slots.put(gpus[slot % len(gpus)] if gpus else None)
        code = [reference for reference in methods if reference.startswith(CODE)]
        self.other_children = set(multiprocessing.active_children())
        super().__init__(count, spawn, initializer=start_worker, initargs=(slots, code))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle processes cleanly; without `wait`, terminate all at once."""
        if not wait:
            for process in set(multiprocessing.active_children()) - self.other_children:
                process.terminate()
        super().shutdown(wait=wait, cancel_futures=cancel_futures)


def start_worker(slots: "SimpleQueue[str | None]", code: Sequence[str]) -> None:
    """Set up a worker: ignore Ctrl-C, which the sweep handles; exit when the sweep is killed."""
    for reference in code:  # jobs refer to its class
        METHODS.add(reference)
    gpu = slots.get()
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
