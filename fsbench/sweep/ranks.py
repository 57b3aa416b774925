"""A job on several GPUs: torchrun's launcher starts a process for each of them."""

from dataclasses import replace

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError
from fsbench.sweep.job import Job, UserMethods, run_job
from fsbench.sweep.workers import set_up_worker


def run_ranks(count: int, job: Job, options: SweepOptions) -> None:
    """Run a job in `count` processes that share its work. Raise FsbenchError if one fails."""
    config = LaunchConfig(1, 1, count, rdzv_backend="c10d", rdzv_endpoint="localhost:0")
    config.max_restarts = 0  # the engine repeats the job
    try:
        launch = elastic_launch(config, run_rank)
        launch(UserMethods(options.method), job, replace(options, gpus=1))
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise FsbenchError(f"rank {rank} of {count}: {failure.message}") from error


def run_rank(methods: UserMethods, job: Job, options: SweepOptions) -> None:
    """Run one rank of a job; it ends with the process that started it."""
    set_up_worker()
    if reason := run_job(methods, job, options):
        raise FsbenchError(reason)
