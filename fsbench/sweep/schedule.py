"""Run the missing jobs of a sweep: ready jobs in order, one more attempt after a failure."""

from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from fsbench.api.machine import RunContext
from fsbench.core.progress import SILENT, Reporter
from fsbench.sweep import evaluation, graph
from fsbench.sweep.file import SweepFile
from fsbench.sweep.graph import SweepPlan, plan_jobs
from fsbench.sweep.job import Job, JobState, Workplace, run_job
from fsbench.sweep.status import StateFiles
from fsbench.sweep.workers import Workers, find_gpus

ATTEMPTS = 2
"""Most attempts of a job; one whose request is wrong fails at once."""


@dataclass
class Scheduler:
    """Runs the jobs of a sweep, `jobs` at a time. failed: key -> reason.

    executor: any of `concurrent.futures` whose processes see the folders of `place`.
    """

    plan: SweepPlan
    place: Workplace
    executor: Executor
    jobs: int
    states: StateFiles
    report: Reporter = SILENT
    failed: dict[str, str] = field(default_factory=dict)
    attempts: Counter[str] = field(default_factory=Counter)

    def run(self) -> dict[str, str]:
        """Run all jobs that can be run; return key -> reason of those that failed."""
        missing = {job.key: position for position, job in enumerate(self.plan.missing)}
        total, unit = sum(map(self.work, missing)), "s of work" if self.plan.seconds else "jobs"
        order: TopologicalSorter[str] = TopologicalSorter()
        for key in missing:
            order.add(key, *(need for need in self.plan.graph.needs[key] if need in missing))
        order.prepare()
        ready, running = list(order.get_ready()), dict[Future[JobState], Job]()
        try:
            with self.report.task("sweep", total, unit) as advance:
                while ready or running:
                    for key in ready[: self.jobs - len(running)]:
                        ready.remove(key)
                        self.start(self.plan.graph.jobs[key], running)
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        job = running.pop(future)
                        if not self.settle(job, future):
                            ready.append(job.key)
                            continue
                        advance(self.work(job.key))
                        if job.key not in self.failed:
                            order.done(job.key)
                    ready = sorted([*ready, *order.get_ready()], key=missing.__getitem__)
        finally:
            self.executor.shutdown(wait=not running, cancel_futures=True)
        unreached = [key for key in missing if not self.attempts[key]]
        return self.failed | dict.fromkeys(unreached, "a job that it needs failed")

    def start(self, job: Job, running: dict[Future[JobState], Job]) -> None:
        self.attempts[job.key] = attempt = self.attempts[job.key] + 1
        self.states.write(JobState.make(job, "running", attempt))
        running[self.executor.submit(run_job, job, self.place, attempt)] = job

    def work(self, key: str) -> int:
        """Return the job's share of the progress: its estimated seconds, or 1."""
        return max(1, self.plan.seconds.get(key, 1))

    def settle(self, job: Job, future: Future[JobState]) -> bool:
        """Record how an attempt ended; return whether the job is over (not tried again)."""
        attempt, error = self.attempts[job.key], future.exception()
        if error is None:
            state = future.result()
        else:  # the process died, or a fault of the code
            state = JobState.make(job, "failed", attempt, reason=f"{type(error).__name__}: {error}")
        self.states.write(state)
        if state.state == "done":
            return True
        is_over = state.wrong or attempt == ATTEMPTS
        self.report.log(f"{job.title}: {state.reason}{'' if is_over else '; tried again'}")
        if is_over:
            self.failed[job.key] = state.reason
        return is_over


def plan_sweep(file: SweepFile, place: Workplace, report: Reporter = SILENT) -> SweepPlan:
    """Build the jobs of the file and compute which are done."""
    RunContext.start(place.machine)
    evaluation.clear_cache()
    return plan_jobs(graph.build_graph(file, place, report), place)


def run_sweep(
    plan: SweepPlan,
    place: Workplace,
    jobs: int = 1,
    report: Reporter = SILENT,
    executor: Executor | None = None,
) -> dict[str, str]:
    """Run the missing jobs, `jobs` at a time; return title -> reason of every failed job.

    executor: of `concurrent.futures`, e.g. that of a cluster's library; by default processes of
    this machine. Raise FsbenchError when another sweep runs in the folder.
    """
    states = StateFiles(place.output)
    with states.lock():
        if not plan.missing:
            return {}
        executor = executor or Workers(jobs, find_gpus(place.device))
        failed = Scheduler(plan, place, executor, jobs, states, report).run()
    return {job.title: failed[key] for key, job in plan.graph.jobs.items() if key in failed}
