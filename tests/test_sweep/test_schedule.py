"""What runs when, and what a failure leaves alone."""

from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.jobs import Fake
from support.sweep import place

from fsbench.core.errors import FsbenchError
from fsbench.core.progress import Advance, Silent
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.job import Job
from fsbench.sweep.schedule import lock_sweep, run_jobs


class Script(Executor):
    """An executor that ends jobs at once, failing as told."""

    def __init__(self, failures: str = "") -> None:
        self.failures = failures
        self.started: list[str] = []
        self.closed = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        job: Job = args[0]
        self.started.append(job.title)
        future: Future[str] = Future()
        future.set_result("it broke" if job.title in self.failures else "")
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True


def diamond() -> tuple[SweepPlan, dict[str, Job]]:
    """a -> b, c; b -> d; e alone."""
    jobs = {name: Fake(name=name) for name in "abcde"}
    graph = SweepPlan()
    for name, needs in {"a": "", "b": "a", "c": "a", "d": "b", "e": ""}.items():
        graph.add(jobs[name], [jobs[need] for need in needs])
    return graph, dict(jobs)


def schedule(tmp_path: Path, script: Script, done: str = "") -> dict[str, str]:
    graph, jobs = diamond()
    plan = replace(graph, done={jobs[name].key: "done" for name in done})
    failed = run_jobs(plan, place(tmp_path, jobs=2), script)
    return {graph.jobs[key].title: reason for key, reason in failed.items()}


def test_nothing_starts_before_what_it_needs(tmp_path: Path) -> None:
    engine = Script()
    assert schedule(tmp_path, engine) == {}
    assert engine.started == ["a", "e", "b", "c", "d"]
    assert engine.closed


def test_what_is_done_is_not_run(tmp_path: Path) -> None:
    engine = Script()
    schedule(tmp_path, engine, done="abe")
    assert engine.started == ["c", "d"]


def test_a_failure_stops_what_needs_it_and_nothing_else(tmp_path: Path) -> None:
    engine = Script("b")
    assert schedule(tmp_path, engine) == {"b": "it broke", "d": "a job that it needs failed"}
    assert sorted(engine.started) == ["a", "b", "c", "e"]


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
    seconds = {jobs[name].key: took for name, took in zip("abcde", (60, 0, 5, 1, 30), strict=True)}
    for durations, opened, moved in (
        (seconds, (97, "s of work"), [1, 1, 5, 30, 60]),
        ({}, (5, "jobs"), [1] * 5),
    ):
        bar, folder = Bar(), tmp_path / str(len(durations))
        run_jobs(replace(graph, seconds=durations), place(folder), Script(), bar)
        assert bar.opened == opened
        assert sorted(bar.moved) == moved


def test_one_sweep_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    with (
        lock_sweep(tmp_path),
        pytest.raises(FsbenchError, match="another sweep"),
        lock_sweep(tmp_path),
    ):
        pass
    with lock_sweep(tmp_path):
        pass
