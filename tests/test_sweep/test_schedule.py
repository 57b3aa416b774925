"""What runs when, what is tried again and what a failure leaves alone."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.jobs import Fake

from fsbench.core.errors import FsbenchError
from fsbench.core.progress import Advance, Silent
from fsbench.sweep.file import SweepFile
from fsbench.sweep.graph import JobGraph, SweepPlan
from fsbench.sweep.job import Job, JobOutcome
from fsbench.sweep.schedule import Scheduler
from fsbench.sweep.status import StateFiles


class Script:
    """An engine of `size` places that ends jobs in the order of their start, failing as told."""

    name = "script"

    def __init__(self, size: int, failures: dict[str, int]) -> None:
        self.size, self.failures = size, failures
        self.queue: deque[Job] = deque()
        self.started: list[str] = []
        self.closed = False

    def takes(self, job: Job) -> bool:
        return len(self.queue) < self.size

    def start(self, job: Job) -> None:
        self.queue.append(job)
        self.started.append(job.title)

    def wait(self) -> list[JobOutcome]:
        job = self.queue.popleft()
        left = self.failures.get(job.title, 0)
        self.failures[job.title] = left - 1
        return [JobOutcome(job.key, "it broke" if left > 0 else "", 1.5, "here", 7)]

    def close(self) -> None:
        self.closed = True


def diamond() -> tuple[JobGraph, dict[str, Job]]:
    """a -> b, c; b -> d; e alone."""
    jobs = {name: Fake(name=name) for name in "abcde"}
    graph = JobGraph()
    for name, needs in {"a": "", "b": "a", "c": "a", "d": "b", "e": ""}.items():
        graph.add(jobs[name], [jobs[need] for need in needs])
    return graph, dict(jobs)


def schedule(
    tmp_path: Path, engine: Script, done: str = "", retries: int = 1
) -> tuple[Scheduler, dict[str, str]]:
    graph, jobs = diamond()
    file = SweepFile.model_validate(
        {"backbones": [{"model": "a"}], "jobs": {"evaluate": {"retries": retries}}}
    )
    plan = SweepPlan(graph, {jobs[name].key: "done" for name in done})
    made = Scheduler(file, plan, engine, StateFiles(tmp_path))
    failed = made.run()
    return made, {graph.jobs[key].title: reason for key, reason in failed.items()}


def test_nothing_starts_before_what_it_needs(tmp_path: Path) -> None:
    engine = Script(2, {})
    _, failed = schedule(tmp_path, engine)
    assert failed == {}
    assert engine.started == ["a", "e", "b", "c", "d"]
    assert engine.closed


def test_what_is_done_is_not_run(tmp_path: Path) -> None:
    engine = Script(2, {})
    schedule(tmp_path, engine, done="abe")
    assert engine.started == ["c", "d"]


def test_a_failure_is_tried_again_as_often_as_declared(tmp_path: Path) -> None:
    engine = Script(1, {"a": 2})
    made, failed = schedule(tmp_path, engine, retries=2)
    assert failed == {}
    assert engine.started.count("a") == 3
    state = made.states.read(Fake(name="a").key)
    assert state is not None
    assert (state.state, state.attempt, state.seconds, state.host) == ("done", 3, 1.5, "here")


def test_a_failure_stops_what_needs_it_and_nothing_else(tmp_path: Path) -> None:
    engine = Script(2, {"b": 9})
    made, failed = schedule(tmp_path, engine, retries=1)
    assert failed == {"b": "it broke", "d": "a job that it needs failed"}
    assert engine.started.count("b") == 2
    assert set(engine.started) == {"a", "b", "c", "e"}
    state = made.states.read(Fake(name="b").key)
    assert state is not None
    assert (state.state, state.reason) == ("failed", "it broke")
    assert made.states.read(Fake(name="d").key) is None


class Bar(Silent):
    """Notes what is opened and how it advances."""

    def __init__(self) -> None:
        self.opened: tuple[int, str] = (0, "")
        self.moved: list[int] = []

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        self.opened = total, unit
        yield self.moved.append


def test_the_bar_counts_the_work_of_jobs_where_it_is_known(tmp_path: Path) -> None:
    graph, jobs = diamond()
    file = SweepFile.model_validate({"backbones": [{"model": "a"}]})
    seconds = {jobs[name].key: took for name, took in zip("abcde", (60, 0, 5, 1, 30), strict=True)}
    for durations, opened, moved in (
        (seconds, (97, "s of work"), [1, 1, 5, 30, 60]),
        ({}, (5, "jobs"), [1] * 5),
    ):
        bar, folder = Bar(), tmp_path / str(len(durations))
        states = StateFiles(folder)
        Scheduler(file, SweepPlan(graph, {}, durations), Script(1, {}), states, bar).run()
        assert bar.opened == opened
        assert sorted(bar.moved) == moved


def test_without_retries_there_is_one_attempt(tmp_path: Path) -> None:
    engine = Script(2, {"e": 1})
    _, failed = schedule(tmp_path, engine, retries=0)
    assert failed == {"e": "it broke"}
    assert engine.started.count("e") == 1


def test_one_sweep_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    states = StateFiles(tmp_path)
    assert not states.alive()
    with states.owned():
        assert StateFiles(tmp_path).alive()
        with pytest.raises(FsbenchError, match="another sweep"), StateFiles(tmp_path).owned():
            pass
    assert not states.alive()
