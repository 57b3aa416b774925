"""Compute which jobs of a sweep remain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fsbench.sweep.evaluation import EvaluationJob, is_on_board
from fsbench.sweep.graph import JobGraph
from fsbench.sweep.job import Job
from fsbench.sweep.place import Workplace
from fsbench.sweep.submission import SubmissionJob
from fsbench.sweep.training import RoundZeroJob, TrainingJob


@dataclass(frozen=True)
class SweepPlan:
    """Jobs of a sweep. done: key -> why it needs no work; all others are missing. seconds:
    estimates of the missing jobs, if made.
    """

    graph: JobGraph
    done: Mapping[str, str]
    seconds: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing(self) -> list[Job]:
        return [job for key, job in self.graph.jobs.items() if key not in self.done]


def plan_jobs(graph: JobGraph, place: Workplace) -> SweepPlan:
    """Compute which jobs are done from folders and board, from the last job to the first."""
    done: dict[str, str] = {}
    for key, job in reversed(graph.jobs.items()):
        reason = explain_done(job, graph, place, done)
        if reason:
            done[key] = reason
    return SweepPlan(graph, done)


def explain_done(job: Job, graph: JobGraph, place: Workplace, later: Mapping[str, str]) -> str:
    """Return why a job needs no work, or ''; later: the same of the jobs that need it."""
    users = graph.needed_by(job.key)
    if isinstance(job, EvaluationJob | SubmissionJob) and is_done_on_board(job, place):
        return "on the board"
    if job.done(place):
        return "done"
    if isinstance(job, TrainingJob):
        return "not needed any more" if users and all(user in later for user in users) else ""
    if isinstance(job, RoundZeroJob):
        runs = [graph.jobs[user] for user in users]
        begun = all(
            r.key in later or (isinstance(r, TrainingJob) and r.started(place)) for r in runs
        )
        return "not needed any more" if begun else ""
    return ""


def is_done_on_board(job: EvaluationJob | SubmissionJob, place: Workplace) -> bool:
    if isinstance(job, SubmissionJob):
        return job.done(place)
    return is_on_board(job, place)
