"""Runs what is missing of a sweep: ready jobs first come first, failed ones again, others on."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsbench.core.progress import SILENT, Reporter
from fsbench.sweep.engine import Engine
from fsbench.sweep.file import SweepFile
from fsbench.sweep.job import Job
from fsbench.sweep.plan import Plan
from fsbench.sweep.states import Seen, States, now
from fsbench.sweep.work import Outcome


@dataclass
class Schedule:
    """One run of a sweep. ended: keys of done jobs; failed: key -> reason."""

    file: SweepFile
    plan: Plan
    engine: Engine
    states: States
    report: Reporter = SILENT
    ended: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)

    def run(self) -> dict[str, str]:
        """Work until nothing is left that can be done; key -> reason of the jobs that failed."""
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
        """Start all that is ready and that the engine takes, in the order of the graph."""
        order = [key for key in self.plan.graph.jobs if key in waiting]
        for key in order:
            ready = all(need in self.ended for need in self.plan.graph.needs[key])
            if ready and self.engine.takes(waiting[key]):
                job = running[key] = waiting.pop(key)
                self.attempts[key] = self.attempts.get(key, 0) + 1
                self.states.write(self.seen(job))
                self.engine.start(job)

    def work(self, key: str) -> int:
        """What a job counts for in the progress: estimated seconds, or itself."""
        return max(1, self.plan.seconds.get(key, 1))

    def settle(self, outcome: Outcome, job: Job, waiting: dict[str, Job]) -> bool:
        """Note how an attempt ended; whether the job is over by it, and not tried again."""
        if not outcome.reason:
            self.ended.add(job.key)
            self.states.write(self.seen(job, outcome))
            return True
        tries = 1 + (0 if outcome.wrong else self.file.resources(job.KIND).retries)
        again = self.attempts[job.key] < tries
        self.report.log(f"{job.title}: {outcome.reason}{'; tried again' if again else ''}")
        self.states.write(self.seen(job, outcome))
        if again:
            waiting[job.key] = job
            return False
        self.failed[job.key] = outcome.reason
        return True

    def seen(self, job: Job, outcome: Outcome | None = None) -> Seen:
        """The state of a job, running where it has no outcome yet."""
        ended = {} if outcome is None else outcome._asdict() | {"key": job.key}
        ended.pop("wrong", None)
        state = "running" if outcome is None else "failed" if outcome.reason else "done"
        fields = {
            "key": job.key,
            "kind": job.KIND,
            "title": job.title,
            "state": state,
            "attempt": self.attempts[job.key],
            "since": now(),
            "engine": self.engine.name,
            "threads": self.file.threads,
        }
        return Seen.model_validate(fields | ended)
