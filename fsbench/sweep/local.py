"""The local engine: processes of one machine, each with a job at a time.

Every slot is a pool of one spawned process, so that a process that dies takes nothing but its job
in flight with it. A process ends by itself when the sweep that started it is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace

from fsbench.sweep.file import SweepFile
from fsbench.sweep.job import Job
from fsbench.sweep.place import Place
from fsbench.sweep.work import Outcome, perform


def prepare() -> None:
    """In a worker: leave Ctrl-C to the sweep, which ends its workers; die when it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_outlive, daemon=True).start()


def _outlive() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@dataclass
class Slot:
    """A process and its job; gpu: which one the job has a share of."""

    pool: ProcessPoolExecutor
    job: Job | None = None
    gpu: int | None = None


class LocalEngine:
    """jobs: processes; gpus: how many this machine has, on which jobs take their shares."""

    name = "local"

    def __init__(self, file: SweepFile, place: Place, jobs: int, gpus: int) -> None:
        self.file, self.place = file, place
        self.before = set(multiprocessing.active_children())
        self.slots = [Slot(self.pool()) for _ in range(jobs)]
        self.gpus = gpus if place.device in ("auto", "cuda") else 0
        self.running: dict[Future[Outcome], Slot] = {}

    @staticmethod
    def pool() -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=spawn, initializer=prepare)

    def share(self, job: Job) -> float:
        """Of one GPU; nothing where there is none."""
        return self.file.resources(job.KIND).gpus if self.gpus else 0.0

    def free_gpu(self, job: Job) -> int | None:
        """The first GPU with room for the job."""
        for gpu in range(self.gpus):
            taken = sum(self.share(s.job) for s in self.slots if s.job and s.gpu == gpu)
            if taken + self.share(job) <= 1 + 1e-9:
                return gpu
        return None

    def takes(self, job: Job) -> bool:
        idle = any(slot.job is None for slot in self.slots)
        return idle and (not self.share(job) or self.free_gpu(job) is not None)

    def start(self, job: Job) -> None:
        slot = next(slot for slot in self.slots if slot.job is None)
        slot.job, slot.gpu = job, self.free_gpu(job) if self.share(job) else None
        device = self.place.device if slot.gpu is None else f"cuda:{slot.gpu}"
        if self.gpus and slot.gpu is None:
            device = "cpu"  # no share was declared
        future = slot.pool.submit(perform, job, replace(self.place, device=device))
        self.running[future] = slot

    def wait(self) -> list[Outcome]:
        ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
        return [self.settle(future) for future in ended]

    def settle(self, future: Future[Outcome]) -> Outcome:
        """Free the slot; a process that died is replaced."""
        slot = self.running.pop(future)
        job, slot.job, slot.gpu = slot.job, None, None
        error = future.exception()
        if error is None:
            return future.result()
        slot.pool.shutdown(wait=False)
        slot.pool = self.pool()
        return Outcome(job.key if job else "", f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Processes without a job put away what they hold; while one has a job, all end at once."""
        if self.running:
            for process in set(multiprocessing.active_children()) - self.before:
                process.terminate()
        for slot in self.slots:
            slot.pool.shutdown(wait=not self.running, cancel_futures=True)
