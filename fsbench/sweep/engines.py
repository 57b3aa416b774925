"""Engines of a sweep: executors of `concurrent.futures` on this machine, on Ray or under SLURM.

The nodes of a cluster see the folders of the sweep under the same paths. A job on a node that fails
runs again on another one, where a training resumes from its checkpoint.
"""

import math
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from typing import Any

import torch

from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.specs import digest
from fsbench.core.workers import Workers
from fsbench.sweep.file import MOST_GPUS, GpuShares
from fsbench.sweep.job import run_job

DAY = 1440
"""Minutes of a job of SLURM, where no `time` is chosen."""
TIMEOUTS = 100
"""Most time limits after which a job of SLURM goes on."""


def make_engine(options: SweepOptions) -> Executor:
    """Return the executor of `options.engine`. Raise UsageError where it cannot be had."""
    if options.engine == "processes":
        return Workers(options.jobs)
    try:
        return RayEngine(options) if options.engine == "ray" else SlurmEngine(options)
    except ImportError as error:
        fix = "pip install 'fsbench[cluster]'"
        raise UsageError(f"{error.name} is not installed", fix=fix) from error


def find_gpus(options: SweepOptions, shares: GpuShares) -> dict[str, float]:
    """Return the GPUs that jobs share, as CUDA names them, and how many jobs fit on each.

    Of SLURM, whose queue waits for GPUs, as many as a training may take, without a limit. Raise
    UsageError where no machine has as many as a job needs.
    """
    if not options.device.startswith(("auto", "cuda")):
        return {}
    if options.engine == "slurm":
        return dict.fromkeys(map(str, range(MOST_GPUS)), math.inf)
    engine = make_engine(options)
    counts = engine.gpus if isinstance(engine, RayEngine) else [torch.cuda.device_count()]
    names = list(map(str, range(sum(counts))))
    _, _, index = options.device.partition(":")
    if options.engine == "processes" and (visible := os.environ.get("CUDA_VISIBLE_DEVICES")):
        names = visible.split(",")[: len(names)]
    names = names[int(index) :][:1] if index else names
    shares.check_machine(min(len(names), max(counts)))
    return dict.fromkeys(names, 1.0)


class RayEngine(Executor):
    """The cluster of RAY_ADDRESS, else that of this machine; Ray repeats a job that died.

    gpus: of each node that has the threads of a job. Without such a node a job waits for ever.
    """

    def __init__(self, options: SweepOptions) -> None:
        import ray

        ray.init(ignore_reinit_error=True, log_to_driver=False)
        self.ray, self.remote, threads = ray, ray.remote(run_job), options.threads or 1
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        self.gpus = [int(node.get("GPU", 0)) for node in nodes if node.get("CPU", 0) >= threads]
        if not self.gpus:
            fix = "give fewer --threads (bits depend on them), or add a larger node"
            raise UsageError(f"no node of Ray has {threads} CPUs, as a job needs", fix=fix)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `run_job` on a node with the threads and GPUs of its options, the last argument."""
        needs = {"num_cpus": args[-1].threads, "num_gpus": args[-1].gpus}
        future: Future[Any] = self.remote.options(**needs).remote(*args).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which ends the jobs that still run."""
        self.ray.shutdown()


class SlurmEngine(ThreadPoolExecutor):
    """SLURM through submitit; a thread waits for each job.

    It starts by cancelling the jobs of a sweep that was killed in the same folder.
    """

    def __init__(self, options: SweepOptions) -> None:
        from submitit import SlurmExecutor, helpers
        from submitit.core.utils import UncompletedJobError

        super().__init__(options.jobs)
        self.helpers, self.error, self.closed = helpers, UncompletedJobError, False
        self.name = f"fsbench-{digest(str(options.output))[:12]}"
        pairs = (text.partition("=") for text in options.slurm)
        chosen = {name: value if equals else True for name, equals, value in pairs}
        minutes = chosen.pop("time", DAY)
        if not str(minutes).isdigit():
            raise UsageError(f"--slurm time={minutes}", fix="write minutes, as time=1440 for a day")
        ask_slurm("sacct", "--noheader")  # which tells submitit that a job has ended
        self.cancel()
        self.executor = SlurmExecutor(options.output / "slurm", max_num_timeout=TIMEOUTS)
        about = {"job_name": self.name, "time": int(minutes), "additional_parameters": chosen}
        self.executor.update_parameters(**about, stderr_to_stdout=True)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue `run_job` for the threads and GPUs of its options, the last argument.

        submitit repeats it when its time is over or its node is taken.
        """
        gpus = math.ceil(args[-1].gpus) or None
        self.executor.update_parameters(cpus_per_task=args[-1].threads, gpus_per_node=gpus)
        call = self.helpers.FunctionSequence()
        call.add(run_job, *args)
        try:
            return super().submit(self.wait_for, self.executor.submit(call))
        except self.error as error:
            fix = "change --slurm, or give --device cpu where the cluster has no GPUs"
            raise UsageError(f"SLURM refuses a job: {error}", fix=fix) from error

    def wait_for(self, job: Any) -> Any:
        """Return the result of a job. Raise FsbenchError if it has none."""
        while not job.done():
            if self.closed:
                raise CancelledError
            time.sleep(1)
        try:
            return job.result()[0]
        except self.error as error:
            message = f"job {job.job_id} of SLURM has no result, its state is {job.state}"
            raise FsbenchError(message, fix=f"see {job.paths.stdout}, and sweep again") from error

    def cancel(self) -> None:
        """Cancel all jobs of the sweep and wait for their ends."""
        ask_slurm("scancel", f"--name={self.name}")
        while ask_slurm("squeue", "--noheader", f"--name={self.name}"):
            time.sleep(1)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads; without `wait`, cancel the jobs."""
        if not wait:
            self.closed = True
            self.cancel()
        super().shutdown(wait=wait, cancel_futures=cancel_futures)


def ask_slurm(*command: str) -> str:
    """Return what a command of SLURM prints. Raise UsageError if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        fix = "start the sweep where sbatch and sacct work"
        raise UsageError(f"SLURM: {getattr(error, 'stderr', '') or error}", fix=fix) from error
