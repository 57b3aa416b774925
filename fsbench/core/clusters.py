"""Clusters as executors of `concurrent.futures`: Ray, and SLURM through submitit.

The last argument of a call states its `threads` and `gpus`. All nodes see the folders that it names
under the same paths. A call on a node that fails runs again on another one, where a training
resumes from its checkpoint.
"""

import math
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.specs import digest

DAY = 1440
"""Minutes of a job of SLURM, where no `time` is chosen."""
TIMEOUTS = 100
"""Most time limits after which a job of SLURM goes on."""


class RayEngine(Executor):
    """The cluster of RAY_ADDRESS, else that of this machine; Ray repeats a call that died.

    gpus: of each node that has the threads of a call. Without such a node a call waits for ever.
    """

    def __init__(self, threads: int) -> None:
        import ray

        ray.init(ignore_reinit_error=True, log_to_driver=False)
        self.ray, self.remote = ray, cache(ray.remote)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        self.gpus = [int(node.get("GPU", 0)) for node in nodes if node.get("CPU", 0) >= threads]
        if not self.gpus:
            fix = "give fewer --threads (bits depend on them), or add a larger node"
            raise UsageError(f"no node of Ray has {threads} CPUs, as a job needs", fix=fix)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function on a node that has its threads and GPUs."""
        needs = {"num_cpus": args[-1].threads, "num_gpus": args[-1].gpus}
        future: Future[Any] = self.remote(fn).options(**needs).remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which ends the calls that still run."""
        self.ray.shutdown()


class SlurmEngine(ThreadPoolExecutor):
    """SLURM; `count` threads wait for its jobs.

    folder: of the calls; it starts by cancelling the jobs of a killed process of the same folder.
    parameters: NAME=VALUE of sbatch; time in minutes.
    """

    def __init__(self, count: int, folder: Path, parameters: Sequence[str] = ()) -> None:
        from submitit import SlurmExecutor, helpers
        from submitit.core.utils import UncompletedJobError

        super().__init__(count)
        self.helpers, self.error, self.closed = helpers, UncompletedJobError, False
        self.name = f"fsbench-{digest(str(folder))[:12]}"
        pairs = (text.partition("=") for text in parameters)
        chosen = {name: value if equals else True for name, equals, value in pairs}
        minutes = chosen.pop("time", DAY)
        if not str(minutes).isdigit():
            raise UsageError(f"--slurm time={minutes}", fix="write minutes, as time=1440 for a day")
        ask_slurm("sacct", "--noheader")  # which tells submitit that a job has ended
        self.cancel()
        self.executor = SlurmExecutor(folder / "slurm", max_num_timeout=TIMEOUTS)
        about = {"job_name": self.name, "time": int(minutes), "additional_parameters": chosen}
        self.executor.update_parameters(**about, stderr_to_stdout=True)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call of a function for its threads and GPUs.

        submitit repeats it when its time is over or its node is taken.
        """
        gpus = math.ceil(args[-1].gpus) or None
        self.executor.update_parameters(cpus_per_task=args[-1].threads, gpus_per_node=gpus)
        call = self.helpers.FunctionSequence()
        call.add(fn, *args, **kwargs)
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
            raise FsbenchError(message, fix=f"see {job.paths.stdout}, then run it again") from error

    def cancel(self) -> None:
        """Cancel all jobs of the folder and wait for their ends."""
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
