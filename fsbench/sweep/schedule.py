"""Run the missing jobs of a sweep: each after the jobs that it needs."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path

from filelock import FileLock, Timeout

from fsbench.api.machine import RunContext
from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError
from fsbench.core.progress import SILENT, Reporter
from fsbench.sweep.evaluation import index_results
from fsbench.sweep.file import SweepFile
from fsbench.sweep.graph import SweepPlan, find_done, plan_jobs
from fsbench.sweep.job import Job, run_job
from fsbench.sweep.workers import Workers, find_gpus


def run_jobs(
    plan: SweepPlan, options: SweepOptions, executor: Executor, report: Reporter = SILENT
) -> dict[str, str]:
    """Run all jobs that can be run, `options.jobs` at a time; return key -> reason of a failure.

    executor: any of `concurrent.futures` whose processes see the folders of `options`.
    """
    jobs = plan.missing
    missing = {job.key: position for position, job in enumerate(jobs)}
    order: TopologicalSorter[str] = TopologicalSorter()
    for key in missing:
        order.add(key, *(need for need in plan.needs[key] if need in missing))
    order.prepare()
    ready = sorted(missing[key] for key in order.get_ready())  # from now on a heap
    running = dict[Future[str], Job]()
    failed = dict.fromkeys(missing, "a job that it needs failed")
    try:
        with report.task("sweep", len(missing), "jobs") as advance:
            while ready or running:
                while ready and len(running) < options.jobs:
                    job = jobs[heappop(ready)]
                    running[start_job(executor, job, options)] = job
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job, error = running.pop(future), future.exception()
                    advance(1)
                    if reason := f"{type(error).__name__}: {error}" if error else future.result():
                        failed[job.key] = reason
                        report.log(f"{job.title}: {reason}")
                    else:
                        del failed[job.key]
                        order.done(job.key)
                for key in order.get_ready():
                    heappush(ready, missing[key])
    finally:
        executor.shutdown(wait=not running, cancel_futures=True)
    return failed


def start_job(executor: Executor, job: Job, options: SweepOptions) -> Future[str]:
    """Submit a job; it fails at once where the death of a process has ended the executor."""
    try:
        return executor.submit(run_job, job, options)
    except BrokenExecutor as error:
        ended: Future[str] = Future()
        ended.set_exception(error)
        return ended


def plan_sweep(file: SweepFile, options: SweepOptions, report: Reporter = SILENT) -> SweepPlan:
    """Build the jobs of the file and compute which are done."""
    RunContext.start(options)
    index_results.cache_clear()  # the board may have changed
    return find_done(plan_jobs(file, options, report), replace(options, progress=report))


def run_sweep(
    plan: SweepPlan,
    options: SweepOptions,
    report: Reporter = SILENT,
    executor: Executor | None = None,
) -> dict[str, str]:
    """Run the missing jobs, `options.jobs` at a time; return title -> reason of every failed job.

    executor: of `concurrent.futures`, e.g. that of a cluster's library; by default processes of
    this machine. Raise FsbenchError when another sweep runs in the folder.
    """
    with lock_sweep(options.output):
        if not plan.missing:
            return {}
        executor = executor or Workers(options.jobs, find_gpus(options.device), options.method)
        failed = run_jobs(plan, options, executor, report)
    return {job.title: failed[key] for key, job in plan.jobs.items() if key in failed}


@contextmanager
def lock_sweep(output: Path) -> Iterator[None]:
    """Lock the folder of a sweep. Raise FsbenchError if another one is running there."""
    output.mkdir(parents=True, exist_ok=True)
    try:
        acquired = FileLock(output / ".lock").acquire(timeout=0)
    except Timeout as error:
        raise FsbenchError(
            f"another sweep is running in {output}", fix="wait for it, or give another -o"
        ) from error
    with acquired:
        yield
