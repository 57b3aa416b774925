"""What of a sweep is done, what is missing, and what the missing part will cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fsbench.sweep import committed
from fsbench.sweep.entry import Submitting
from fsbench.sweep.evaluating import Evaluating
from fsbench.sweep.graph import Graph
from fsbench.sweep.job import Job
from fsbench.sweep.place import Place
from fsbench.sweep.training import RoundZero, Training


@dataclass(frozen=True)
class Plan:
    """done: key -> why it needs no work; every other job of the graph is missing. seconds: what
    these are estimated to take; none where nobody asked.
    """

    graph: Graph
    done: Mapping[str, str]
    seconds: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing(self) -> list[Job]:
        return [job for key, job in self.graph.jobs.items() if key not in self.done]


def plan(graph: Graph, place: Place) -> Plan:
    """Look at the folders and the board, from the last jobs to the first."""
    done: dict[str, str] = {}
    for key, job in reversed(graph.jobs.items()):
        reason = why_done(job, graph, place, done)
        if reason:
            done[key] = reason
    return Plan(graph, done)


def why_done(job: Job, graph: Graph, place: Place, later: Mapping[str, str]) -> str:
    """Why a job needs no work, empty where it does; later: what is known of those that need it."""
    users = graph.needed_by(job.key)
    if isinstance(job, Evaluating | Submitting) and on_board(job, place):
        return "on the board"
    if job.done(place):
        return "done"
    if isinstance(job, Training):
        return "not needed any more" if users and all(user in later for user in users) else ""
    if isinstance(job, RoundZero):
        runs = [graph.jobs[user] for user in users]
        begun = all(r.key in later or (isinstance(r, Training) and r.started(place)) for r in runs)
        return "not needed any more" if begun else ""
    return ""


def on_board(job: Evaluating | Submitting, place: Place) -> bool:
    if isinstance(job, Submitting):
        return job.done(place)
    return committed.committed(job, place)
