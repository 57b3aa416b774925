"""Run the missing jobs of a sweep: each after the jobs that it needs."""

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from fsbench.api.machine import RunContext
from fsbench.api.options import SweepOptions
from fsbench.core.progress import SILENT, Reporter
from fsbench.sweep import evaluation, graph
from fsbench.sweep.file import SweepFile
from fsbench.sweep.graph import SweepPlan, plan_jobs
from fsbench.sweep.job import Job, JobState, run_job
from fsbench.sweep.status import StateFiles
from fsbench.sweep.workers import Workers, find_gpus


@dataclass
class Scheduler:
    """Runs the jobs of a sweep, `place.jobs` at a time. failed: key -> reason.

    executor: any of `concurrent.futures` whose processes see the folders of `place`.
    """

    plan: SweepPlan
    place: SweepOptions
    executor: Executor
    states: StateFiles
    report: Reporter = SILENT
    failed: dict[str, str] = field(default_factory=dict)

    def run(self) -> dict[str, str]:
        """Run all jobs that can be run; return key -> reason of those that failed."""
        missing = {job.key: position for position, job in enumerate(self.plan.missing)}
        total, unit = sum(map(self.work, missing)), "s of work" if self.plan.seconds else "jobs"
        order: TopologicalSorter[str] = TopologicalSorter()
        for key in missing:
            order.add(key, *(need for need in self.plan.graph.needs[key] if need in missing))
        order.prepare()
        ready, running = list(order.get_ready()), dict[Future[JobState], Job]()
        started: set[str] = set()
        try:
            with self.report.task("sweep", total, unit) as advance:
                while ready or running:
                    for key in ready[: self.place.jobs - len(running)]:
                        ready.remove(key)
                        started.add(key)
                        job = self.plan.graph.jobs[key]
                        self.states.write(JobState.make(job, "running"))
                        running[self.executor.submit(run_job, job, self.place)] = job
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        job = running.pop(future)
                        self.settle(job, future)
                        advance(self.work(job.key))
                        if job.key not in self.failed:
                            order.done(job.key)
                    ready = sorted([*ready, *order.get_ready()], key=missing.__getitem__)
        finally:
            self.executor.shutdown(wait=not running, cancel_futures=True)
        unreached = [key for key in missing if key not in started]
        return self.failed | dict.fromkeys(unreached, "a job that it needs failed")

    def work(self, key: str) -> int:
        """Return the job's share of the progress: its estimated seconds, or 1."""
        return max(1, self.plan.seconds.get(key, 1))

    def settle(self, job: Job, future: Future[JobState]) -> None:
        """Record how a job ended."""
        if error := future.exception():  # the process died, or a fault of the code
            state = JobState.make(job, "failed", reason=f"{type(error).__name__}: {error}")
        else:
            state = future.result()
        self.states.write(state)
        if state.state != "done":
            self.failed[job.key] = state.reason
            self.report.log(f"{job.title}: {state.reason}")


def plan_sweep(file: SweepFile, place: SweepOptions, report: Reporter = SILENT) -> SweepPlan:
    """Build the jobs of the file and compute which are done."""
    RunContext.start(place)
    evaluation.clear_cache()
    return plan_jobs(graph.build_graph(file, place, report), place)


def run_sweep(
    plan: SweepPlan,
    place: SweepOptions,
    report: Reporter = SILENT,
    executor: Executor | None = None,
) -> dict[str, str]:
    """Run the missing jobs, `place.jobs` at a time; return title -> reason of every failed job.

    executor: of `concurrent.futures`, e.g. that of a cluster's library; by default processes of
    this machine. Raise FsbenchError when another sweep runs in the folder.
    """
    states = StateFiles(place.output)
    with states.lock():
        if not plan.missing:
            return {}
        executor = executor or Workers(place.jobs, find_gpus(place.device), place.method)
        failed = Scheduler(plan, place, executor, states, report).run()
    return {job.title: failed[key] for key, job in plan.graph.jobs.items() if key in failed}
