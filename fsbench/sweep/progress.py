"""How far a sweep is: every job's state, the rate, and the time left at that rate."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import NamedTuple

from fsbench.api.estimate import duration
from fsbench.sweep.file import Kind
from fsbench.sweep.job import Job
from fsbench.sweep.place import Place
from fsbench.sweep.plan import Plan
from fsbench.sweep.states import Seen, States

LIVE, BROKEN = "running", "stopped"
"""A job that a scheduler waits for, and one whose sweep was killed under it."""
UNFINISHED = ("missing", LIVE, BROKEN, "failed")


class Row(NamedTuple):
    """A job; seconds: what it took, where it ran here. key: its first 16 digits."""

    key: str
    kind: Kind
    title: str
    state: str
    seconds: float | None
    reason: str
    attempt: int
    host: str | None


def rows(plan: Plan, place: Place) -> list[Row]:
    """All jobs in the order of the graph: what folders and board say goes before what was noted."""
    states = States(place.output)
    alive = states.alive()
    return [
        row(job, plan.done.get(key, ""), states.read(key), alive)
        for key, job in plan.graph.jobs.items()
    ]


def row(job: Job, done: str, seen: Seen | None, alive: bool) -> Row:
    state, reason = done or "missing", ""
    if not done and seen and seen.state != "done":
        state, reason = seen.state, seen.reason
        if state == LIVE and not alive:
            state, reason = BROKEN, "its sweep was killed; run it again to go on"
    known = (seen.seconds, reason, seen.attempt, seen.host) if seen else (None, reason, 0, None)
    return Row(job.key[:16], job.KIND, job.title, state, *known)


def summary(rows: list[Row]) -> str:
    """Counts, the rate of one process and the time left on it, by the mean of each kind."""
    counts: dict[str, int] = defaultdict(int)
    for each in rows:
        counts[each.state] += 1
    text = ", ".join(f"{n} {state}" for state, n in counts.items())
    took: dict[Kind, list[float]] = defaultdict(list)
    for each in rows:
        if each.seconds is not None and each.state not in UNFINISHED:
            took[each.kind].append(each.seconds)
    left = [each.kind for each in rows if each.state in UNFINISHED]
    if not took:
        return text
    every = [seconds for kind in took.values() for seconds in kind]
    rate = f"{3600 / max(fmean(every), 1e-9):.3g} jobs an hour and process"
    seconds = sum(fmean(took.get(kind, every)) for kind in left)
    return f"{text}; {rate}" + (f", about {duration(seconds)} left on one" if left else "")


def time(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)
