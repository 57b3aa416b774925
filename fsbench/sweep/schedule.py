"""Run the missing jobs of a sweep by its engine: each after the jobs that it needs."""

import math
import os
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import replace
from graphlib import TopologicalSorter
from heapq import heappop, heappush, nlargest

import torch

from fsbench.api.machine import RunContext
from fsbench.api.options import SweepOptions
from fsbench.core.clusters import RayEngine, SlurmEngine
from fsbench.core.errors import UsageError
from fsbench.core.io import lock_exclusively
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.workers import Workers
from fsbench.sweep.file import MOST_GPUS, GpuShares, SweepFile
from fsbench.sweep.graph import SweepPlan, find_done, plan_jobs
from fsbench.sweep.job import Job, UserMethods, run_job


class JobQueue:
    """Missing jobs that can start: the earliest of the plan for which there is room on GPUs."""

    def __init__(self, plan: SweepPlan) -> None:
        self.plan, self.room = plan, {**plan.gpus}
        self.gpus_by_job = dict[str, list[str]]()
        self.missing = {job.key: position for position, job in enumerate(plan.missing)}
        needs = {key: self.missing.keys() & plan.needs[key] for key in self.missing}
        self.order = TopologicalSorter(needs)
        self.order.prepare()
        self.on_cpu, self.on_gpu = list[tuple[int, Job]](), list[tuple[int, Job]]()

    def pop(self) -> Job | None:
        """Return the next job, which takes its GPUs; None if no job can start."""
        for key in self.order.get_ready():
            job = self.plan.jobs[key]
            heap = self.on_gpu if self.plan.share_of(job) else self.on_cpu
            heappush(heap, (self.missing[key], job))
        for heap in sorted(filter(None, (self.on_cpu, self.on_gpu))):
            job, share = heap[0][1], self.plan.share_of(heap[0][1])
            emptiest = nlargest(math.ceil(share), self.room, key=self.room.__getitem__)
            if all(self.room[name] >= min(share, 1) for name in emptiest):
                self.gpus_by_job[job.key] = emptiest
                self.add_room(job, -1)
                return heappop(heap)[1]
        return None

    def add_room(self, job: Job, sign: int) -> None:
        """Free the GPUs of a job, or take them (sign -1)."""
        for name in self.gpus_by_job[job.key]:
            part = sign * min(self.plan.share_of(job), 1)
            self.room[name] = round(self.room[name] + part, 6)  # tenths sum to 1

    def end(self, job: Job, is_done: bool) -> None:
        """Free the GPUs of a job; what needs it can start if it is done."""
        self.add_room(job, 1)
        if is_done:
            self.order.done(job.key)


def run_jobs(
    plan: SweepPlan, options: SweepOptions, executor: Executor, report: Reporter = SILENT
) -> dict[str, str]:
    """Run all jobs that can be run, `options.jobs` at a time; return key -> reason of a failure.

    executor: any of `concurrent.futures` whose processes see the folders of `options`.
    """
    queue, running = JobQueue(plan), dict[Future[str], Job]()
    failed = dict.fromkeys(queue.missing, "a job that it needs failed")
    methods = UserMethods(options.method)
    try:
        with report.task("sweep", len(failed), "jobs") as advance:
            while True:
                while len(running) < options.jobs and (job := queue.pop()):
                    chosen = plan.options_of(job, options, queue.gpus_by_job[job.key])
                    running[executor.submit(run_job, methods, job, chosen)] = job
                if not running:
                    return failed
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job, error = running.pop(future), future.exception()
                    advance(1)
                    if reason := f"{type(error).__name__}: {error}" if error else future.result():
                        failed[job.key] = reason
                        report.log(f"{job.title}: {reason}")
                    else:
                        del failed[job.key]
                    queue.end(job, is_done=not reason)
    finally:
        executor.shutdown(wait=not running, cancel_futures=True)


def make_engine(options: SweepOptions) -> Executor:
    """Return the executor of `options.engine`. Raise UsageError where it cannot be had."""
    if options.engine == "processes":
        return Workers(options.jobs)
    try:
        if options.engine == "ray":
            return RayEngine(options.threads or 1)
        return SlurmEngine(options.jobs, options.output, options.slurm)
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
    most = min(len(names), max(counts))
    if shares.pretrain > max(1, most):  # without any, the CPU
        raise UsageError(
            f"`gpus` states {shares.pretrain:g} for a training, and a machine has {most} to use",
            fix=f"write `gpus: {{pretrain: {max(1, most)}}}`, or use --engine slurm or ray",
        )
    return dict.fromkeys(names, 1.0)


def plan_sweep(file: SweepFile, options: SweepOptions, report: Reporter = SILENT) -> SweepPlan:
    """Build the jobs of the file and compute which are done. Raise UsageError for too few GPUs."""
    RunContext.start(options if options.engine == "processes" else replace(options, device="cpu"))
    gpus = find_gpus(options, file.gpus)
    plan = replace(plan_jobs(file, options, report), gpus=gpus, shares=file.gpus)
    return find_done(plan, replace(options, progress=report))


def run_sweep(plan: SweepPlan, options: SweepOptions, report: Reporter = SILENT) -> dict[str, str]:
    """Run the missing jobs by the engine of the options; return title -> reason of failed ones.

    Raise FsbenchError when another sweep runs in the folder.
    """
    with lock_exclusively(options.output, "sweeping"):
        if not plan.missing:
            return {}
        failed = run_jobs(plan, options, make_engine(options), report)
    return {job.title: failed[key] for key, job in plan.jobs.items() if key in failed}
