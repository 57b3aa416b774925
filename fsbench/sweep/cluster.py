"""The Ray engine: jobs as tasks of an existing cluster, whose nodes see the same folders.

Ray places them by CPUs (the threads of a job) and shares of GPUs and says when a worker or a node
died; what is tried again is the schedule's to say, as everywhere. Needs the extra `ray`.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

from fsbench.core.errors import UsageError
from fsbench.core.progress import Reporter
from fsbench.sweep.file import SweepFile
from fsbench.sweep.job import Job
from fsbench.sweep.place import Place
from fsbench.sweep.work import Outcome, perform

AUTO = "auto"


def ray() -> ModuleType:
    """Raises UsageError where Ray is not installed."""
    try:
        import ray as found
    except ImportError as error:
        raise UsageError(
            "--engine ray needs Ray, which is not installed", fix="pip install 'fsbench[ray]'"
        ) from error
    module: ModuleType = found  # untyped where Ray is not installed
    return module


class RayEngine:
    """address: HOST:PORT of the cluster; None: the one that runs on this machine."""

    name = "ray"

    def __init__(
        self, file: SweepFile, place: Place, address: str | None, report: Reporter
    ) -> None:
        self.ray, self.file, self.place = ray(), file, place
        connect(self.ray, address or AUTO)
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        require_cpus(nodes, place.threads)
        self.gpus = sum(node["Resources"].get("GPU", 0) for node in nodes)
        report.log(f"Ray: {len(nodes)} nodes, {self.gpus:g} GPUs")
        self.task = self.ray.remote(max_retries=0)(perform)
        self.running: dict[Any, Job] = {}

    def share(self, job: Job) -> float:
        """Of one GPU; nothing where the cluster has none."""
        return self.file.resources(job.KIND).gpus if self.gpus else 0.0

    def takes(self, job: Job) -> bool:
        """Always: Ray keeps the queue."""
        return True

    def start(self, job: Job) -> None:
        share, place = self.share(job), self.place
        if self.gpus and not share and place.device == "auto":
            place = replace(place, device="cpu")
        task = self.task.options(num_cpus=place.threads, num_gpus=share, name=job.title)
        self.running[task.remote(job, place)] = job

    def wait(self) -> list[Outcome]:
        ended, _ = self.ray.wait(list(self.running), num_returns=1)
        return [self.settle(ref) for ref in ended]

    def settle(self, ref: Any) -> Outcome:
        job = self.running.pop(ref)
        try:
            outcome: Outcome = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()
            return Outcome(job.key, f"{type(error).__name__}: {first[-1] if first else ''}")
        return outcome

    def close(self) -> None:
        for ref in self.running:
            self.ray.cancel(ref, force=True)
        self.ray.shutdown()


def connect(found: ModuleType, address: str) -> None:
    """Raises UsageError where no cluster answers."""
    try:
        found.init(address=address, log_to_driver=False, logging_level="WARNING")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"no Ray cluster at {address}: {str(error).splitlines()[0]}",
            fix="start one (ray start --head), and give --address HOST:PORT",
        ) from error


def require_cpus(nodes: list[dict[str, Any]], threads: int) -> None:
    """Raises UsageError where no node is large enough for one job, which would wait for ever."""
    most = max((node["Resources"].get("CPU", 0) for node in nodes), default=0)
    if most < threads:
        raise UsageError(
            f"a job takes {threads} CPUs, the largest node of the cluster has {most:g}",
            fix="lower `threads` in the sweep file, or add a node",
        )
