"""Engines of a sweep: executors of `concurrent.futures` on this machine, on Ray or under SLURM.

The nodes of a cluster see the folders of the sweep under the same paths. A job on a node that fails
runs again on another one, where a training resumes from its checkpoint.
"""

import math
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import torch

from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.io import split_assignments
from fsbench.core.specs import digest
from fsbench.sweep.file import MOST_GPUS
from fsbench.sweep.job import run_job
from fsbench.sweep.workers import Workers

INSTALL = "pip install 'fsbench[cluster]'"
DAY = 1440
"""Minutes of a job of SLURM, where no `time` is chosen."""
TIMEOUTS = 100
"""Most time limits after which a job of SLURM goes on."""


def make_engine(options: SweepOptions) -> Executor:
    """Return the executor of `options.engine`. Raise UsageError where it cannot be had."""
    if options.engine == "processes":
        return Workers(options.jobs)
    return RayEngine() if options.engine == "ray" else SlurmEngine(options)


def find_gpus(options: SweepOptions) -> dict[str, float]:
    """Return the GPUs that jobs share, as CUDA names them, and how many jobs fit on each.

    Of SLURM, whose queue waits for GPUs, as many as a training may take, without a limit.
    """
    if not options.device.startswith(("auto", "cuda")):
        return {}
    if options.engine == "slurm":
        return dict.fromkeys(map(str, range(MOST_GPUS)), math.inf)
    count = RayEngine().gpus if options.engine == "ray" else torch.cuda.device_count()
    names = list(map(str, range(count)))
    _, _, index = options.device.partition(":")
    if options.engine == "processes" and (visible := os.environ.get("CUDA_VISIBLE_DEVICES")):
        names = visible.split(",")[:count]
    return dict.fromkeys(names[int(index) :][:1] if index else names, 1.0)


class RayEngine(Executor):
    """The cluster of RAY_ADDRESS, else that of this machine; Ray repeats a job that died."""

    def __init__(self) -> None:
        try:
            import ray
        except ImportError as error:
            raise UsageError("Ray is not installed", fix=INSTALL) from error
        ray.init(ignore_reinit_error=True, log_to_driver=False)
        self.ray, self.gpus = ray, int(ray.cluster_resources().get("GPU", 0))
        self.remote = ray.remote(run_job)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `run_job` on a node with the threads and GPUs of its options, the last argument."""
        needs = {"num_cpus": args[-1].threads, "num_gpus": args[-1].gpus}
        future: Future[Any] = self.remote.options(**needs).remote(*args).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which ends the jobs that still run."""
        self.ray.shutdown()


class ResumedCall:
    """A call of `run_job` that submitit repeats when its time is over or its node is taken."""

    def __call__(self, *args: Any) -> str:
        return run_job(*args)

    def checkpoint(self, *args: Any) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *args)


class SlurmEngine(ThreadPoolExecutor):
    """SLURM through submitit; a thread waits for each job.

    It starts by cancelling the jobs of a sweep that was killed in the same folder.
    """

    def __init__(self, options: SweepOptions) -> None:
        try:
            import submitit
        except ImportError as error:
            raise UsageError("submitit is not installed", fix=INSTALL) from error
        super().__init__(options.jobs)
        self.submitit, self.folder, self.closed = submitit, options.output / "slurm", False
        self.settings: dict[str, Any] = dict(split_assignments(options.slurm, "NAME=VALUE"))
        self.time = int(self.settings.pop("time", DAY))
        self.name = f"fsbench-{digest(str(options.output))[:12]}"
        ask_slurm("sacct", "--noheader")  # which tells submitit that a job has ended
        self.cancel()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue `run_job` for the threads and GPUs of its options, the last argument."""
        executor = self.submitit.SlurmExecutor(self.folder, max_num_timeout=TIMEOUTS)
        executor.update_parameters(
            job_name=self.name,
            time=self.time,
            cpus_per_task=args[-1].threads,
            gpus_per_node=math.ceil(args[-1].gpus) or None,
            stderr_to_stdout=True,
            additional_parameters=self.settings,
        )
        try:
            return super().submit(self.wait_for, executor.submit(ResumedCall(), *args))
        except self.submitit.core.utils.FailedJobError as error:
            raise UsageError(f"SLURM refuses a job: {error}", fix="change --slurm") from error

    def wait_for(self, job: Any) -> Any:
        """Return the result of a job. Raise FsbenchError if it has none."""
        while not (job.done() or self.closed):
            time.sleep(1)
        if not job.paths.result_pickle.exists():
            message = f"job {job.job_id} of SLURM ended as {job.state}"
            raise FsbenchError(message, fix=f"see {job.paths.stdout}, and run the command again")
        return job.result()

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
