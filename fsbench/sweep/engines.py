"""Engines that run jobs: processes of this machine, or tasks of a Ray cluster.

A slot of the local engine is a pool of one spawned process: a process that dies takes only its own
job with it, and every process ends when the sweep that started it is gone. Ray places jobs by CPUs
(the threads of a job) and shares of GPUs; the scheduler decides about retries in both cases.
"""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Protocol

from fsbench.core.errors import UsageError
from fsbench.core.progress import Reporter
from fsbench.sweep.file import SweepFile
from fsbench.sweep.job import Job, JobOutcome, Workplace, run_job


class Engine(Protocol):
    """Interface of an engine: it runs jobs and reports how they ended."""

    name: str

    def takes(self, job: Job) -> bool:
        """Return whether the engine would start the job at once."""

    def start(self, job: Job) -> None:
        """Start a job that it takes."""

    def wait(self) -> list[JobOutcome]:
        """Block until a job ends; return the outcomes of all jobs that ended."""

    def close(self) -> None:
        """Stop all running jobs."""


def start_worker() -> None:
    """Set up a worker: ignore Ctrl-C, which the sweep handles; exit when the sweep is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_outlive, daemon=True).start()


def _outlive() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@dataclass
class WorkerSlot:
    """A worker process and its job; gpu: index of the GPU that the job shares."""

    pool: ProcessPoolExecutor
    job: Job | None = None
    gpu: int | None = None


class LocalEngine:
    """Engine of this machine. jobs: worker processes; gpus: number of GPUs that jobs share."""

    name = "local"

    def __init__(self, file: SweepFile, place: Workplace, jobs: int, gpus: int) -> None:
        self.file, self.place = file, place
        self.before = set(multiprocessing.active_children())
        self.slots = [WorkerSlot(self.pool()) for _ in range(jobs)]
        self.gpus = gpus if place.device in ("auto", "cuda") else 0
        self.running: dict[Future[JobOutcome], WorkerSlot] = {}

    @staticmethod
    def pool() -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=spawn, initializer=start_worker)

    def share(self, job: Job) -> float:
        """Return the share of one GPU that the job takes; 0 without GPUs."""
        return self.file.resources(job.KIND).gpus if self.gpus else 0.0

    def free_gpu(self, job: Job) -> int | None:
        """Return the first GPU with room for the job."""
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
        future = slot.pool.submit(run_job, job, replace(self.place, device=device))
        self.running[future] = slot

    def wait(self) -> list[JobOutcome]:
        ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
        return [self.settle(future) for future in ended]

    def settle(self, future: Future[JobOutcome]) -> JobOutcome:
        """Free the slot; replace a process that died."""
        slot = self.running.pop(future)
        job, slot.job, slot.gpu = slot.job, None, None
        error = future.exception()
        if error is None:
            return future.result()
        slot.pool.shutdown(wait=False)
        slot.pool = self.pool()
        return JobOutcome(job.key if job else "", f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Shut down idle workers cleanly; with a job running, terminate all at once."""
        if self.running:
            for process in set(multiprocessing.active_children()) - self.before:
                process.terminate()
        for slot in self.slots:
            slot.pool.shutdown(wait=not self.running, cancel_futures=True)


AUTO = "auto"


def import_ray() -> ModuleType:
    """Import Ray. Raise UsageError if it is not installed."""
    try:
        import ray as ray_module
    except ImportError as error:
        raise UsageError(
            "--engine ray needs Ray, which is not installed", fix="pip install 'fsbench[ray]'"
        ) from error
    module: ModuleType = ray_module  # untyped where Ray is not installed
    return module


class RayEngine:
    """Engine of a Ray cluster. address: HOST:PORT; None: the cluster of this machine."""

    name = "ray"

    def __init__(
        self, file: SweepFile, place: Workplace, address: str | None, report: Reporter
    ) -> None:
        self.ray, self.file, self.place = import_ray(), file, place
        connect_to_ray(self.ray, address or AUTO)
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        require_cpus(nodes, place.threads)
        self.gpus = sum(node["Resources"].get("GPU", 0) for node in nodes)
        report.log(f"Ray: {len(nodes)} nodes, {self.gpus:g} GPUs")
        self.task = self.ray.remote(max_retries=0)(run_job)
        self.running: dict[Any, Job] = {}

    def share(self, job: Job) -> float:
        """Return the share of one GPU that the job takes; 0 without GPUs."""
        return self.file.resources(job.KIND).gpus if self.gpus else 0.0

    def takes(self, job: Job) -> bool:
        """Return True: Ray keeps the queue."""
        return True

    def start(self, job: Job) -> None:
        share, place = self.share(job), self.place
        if self.gpus and not share and place.device == "auto":
            place = replace(place, device="cpu")
        task = self.task.options(num_cpus=place.threads, num_gpus=share, name=job.title)
        self.running[task.remote(job, place)] = job

    def wait(self) -> list[JobOutcome]:
        ended, _ = self.ray.wait(list(self.running), num_returns=1)
        return [self.settle(ref) for ref in ended]

    def settle(self, ref: Any) -> JobOutcome:
        job = self.running.pop(ref)
        try:
            outcome: JobOutcome = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()
            return JobOutcome(job.key, f"{type(error).__name__}: {first[-1] if first else ''}")
        return outcome

    def close(self) -> None:
        for ref in self.running:
            self.ray.cancel(ref, force=True)
        self.ray.shutdown()


def connect_to_ray(ray_module: ModuleType, address: str) -> None:
    """Connect to the cluster. Raise UsageError if none answers."""
    try:
        ray_module.init(address=address, log_to_driver=False, logging_level="WARNING")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"no Ray cluster at {address}: {str(error).splitlines()[0]}",
            fix="start one (ray start --head), and give --address HOST:PORT",
        ) from error


def require_cpus(nodes: list[dict[str, Any]], threads: int) -> None:
    """Raise UsageError if no node has enough CPUs for one job, which would wait forever."""
    most = max((node["Resources"].get("CPU", 0) for node in nodes), default=0)
    if most < threads:
        raise UsageError(
            f"a job takes {threads} CPUs, the largest node of the cluster has {most:g}",
            fix="lower `threads` in the sweep file, or add a node",
        )
