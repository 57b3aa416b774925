"""Run the missing jobs of a sweep: ready jobs in order, retries after a failure."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from fsbench.core.progress import SILENT, Reporter
from fsbench.sweep import evaluation, graph
from fsbench.sweep.engines import Engine
from fsbench.sweep.file import SweepFile
from fsbench.sweep.graph import SweepPlan, plan_jobs
from fsbench.sweep.job import Job, JobOutcome, Workplace
from fsbench.sweep.status import JobState, StateFiles


@dataclass
class Scheduler:
    """Runs the jobs of a sweep. ended: keys of done jobs; failed: key -> reason."""

    file: SweepFile
    plan: SweepPlan
    engine: Engine
    states: StateFiles
    report: Reporter = SILENT
    ended: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)

    def run(self) -> dict[str, str]:
        """Run all jobs that can be run; return key -> reason of those that failed."""
        self.ended = set(self.plan.done)
        waiting = {job.key: job for job in self.plan.missing}
        running: dict[str, Job] = {}
        total, unit = sum(map(self.work, waiting)), "s of work" if self.plan.seconds else "jobs"
        try:
            with self.report.task("sweep", total, unit) as advance:
                while waiting or running:
                    self.start_ready(waiting, running)
                    if not running:
                        break
                    for outcome in self.engine.wait():
                        over = self.settle(outcome, running.pop(outcome.key), waiting)
                        advance(self.work(outcome.key) if over else 0)
        finally:
            self.engine.close()
        self.failed |= dict.fromkeys(waiting, "a job that it needs failed")
        return self.failed

    def start_ready(self, waiting: dict[str, Job], running: dict[str, Job]) -> None:
        """Start the ready jobs that the engine accepts, in the order of the graph."""
        for key in [key for key in self.plan.graph.jobs if key in waiting]:
            ready = all(need in self.ended for need in self.plan.graph.needs[key])
            if ready and self.engine.takes(waiting[key]):
                job = running[key] = waiting.pop(key)
                self.attempts[key] = self.attempts.get(key, 0) + 1
                self.states.write(self.state_of(job))
                self.engine.start(job)

    def work(self, key: str) -> int:
        """Return the job's share of the progress: its estimated seconds, or 1."""
        return max(1, self.plan.seconds.get(key, 1))

    def settle(self, outcome: JobOutcome, job: Job, waiting: dict[str, Job]) -> bool:
        """Record how an attempt ended; return whether the job is over (not retried)."""
        self.states.write(self.state_of(job, outcome))
        if not outcome.reason:
            self.ended.add(job.key)
            return True
        tries = 1 + (0 if outcome.wrong else self.file.resources(job.KIND).retries)
        again = self.attempts[job.key] < tries
        self.report.log(f"{job.title}: {outcome.reason}{'; tried again' if again else ''}")
        if again:
            waiting[job.key] = job
            return False
        self.failed[job.key] = outcome.reason
        return True

    def state_of(self, job: Job, outcome: JobOutcome | None = None) -> JobState:
        """Return the state of a job; running without an outcome."""
        ended = {} if outcome is None else outcome._asdict() | {"key": job.key}
        ended.pop("wrong", None)
        state = "running" if outcome is None else "failed" if outcome.reason else "done"
        fields = {
            "key": job.key,
            "kind": job.KIND,
            "title": job.title,
            "state": state,
            "attempt": self.attempts[job.key],
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "engine": self.engine.name,
            "threads": self.file.threads,
        }
        return JobState.model_validate(fields | ended)


EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class EngineOptions:
    """Engine and its size. jobs: processes of the local engine; address: Ray cluster."""

    engine: EngineName = "local"
    jobs: int = 1
    address: str | None = None


def plan_sweep(file: SweepFile, place: Workplace, report: Reporter = SILENT) -> SweepPlan:
    """Build the jobs of the file and compute which are done."""
    place.machine.start()
    evaluation.clear_cache()
    return plan_jobs(graph.build_graph(file, place, report), place)


def run_sweep(
    file: SweepFile,
    place: Workplace,
    how: EngineOptions,
    report: Reporter = SILENT,
    plan_made: SweepPlan | None = None,
) -> dict[str, str]:
    """Run the missing jobs; return title -> reason of every failed job.

    plan_made: the plan, if it exists already. Raise FsbenchError when another sweep runs in the
    folder, UsageError for an engine that is not installed.
    """
    states = StateFiles(place.output)
    with states.owned():
        todo = plan_made or plan_sweep(file, place, report)
        if not todo.missing:
            return {}
        engine = start_engine(file, place, how, report)
        failed = Scheduler(file, todo, engine, states, report).run()
    return {job.title: failed[key] for key, job in todo.graph.jobs.items() if key in failed}


def start_engine(file: SweepFile, place: Workplace, how: EngineOptions, report: Reporter) -> Engine:
    """Start the engine."""
    if how.engine == "ray":
        from fsbench.sweep.engines import RayEngine

        return RayEngine(file, place, how.address, report)
    import torch

    from fsbench.sweep.engines import LocalEngine

    return LocalEngine(file, place, how.jobs, torch.cuda.device_count())
