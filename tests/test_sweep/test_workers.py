"""Workers of a sweep: a process that dies takes its job with it and nothing else."""

import os
import signal
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest
from support.jobs import Fake
from support.sweep import place

from fsbench.api.options import SweepOptions
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.schedule import run_jobs
from fsbench.sweep.workers import Workers, find_gpus


def kill_when(path: Path) -> None:
    """SIGKILL the process that writes its number into `path`, as soon as it does."""
    while not (path.exists() and path.read_text().split()):
        time.sleep(0.02)
    os.kill(int(path.read_text().split()[0]), signal.SIGKILL)


def schedule(graph: SweepPlan, here: SweepOptions, workers: Workers) -> dict[str, str]:
    here = replace(here, jobs=workers.pools.qsize())
    failed = run_jobs(graph, here, workers)
    return {graph.jobs[key].title: reason for key, reason in failed.items()}


def test_killed_workers_and_failing_jobs_leave_the_others_alone(tmp_path: Path) -> None:
    here, graph = place(tmp_path), SweepPlan()
    tasks = {"a": "hang", "b": "", "c": "fail", "d": "crash", "e": "", "f": "wrong"}
    for name, does in tasks.items():
        graph.add(Fake(name=name, does=does))
    killer = threading.Thread(target=kill_when, args=(here.output / "a.tries",))
    killer.start()
    said = schedule(graph, here, Workers(2))
    killer.join()
    assert said.keys() == {"a", "c", "d", "f"}
    assert said["a"].startswith("BrokenProcessPool")
    assert "c cannot be read" in said["c"]
    assert said["d"] == "ZeroDivisionError: d"
    tries = {
        name: len((here.output / f"{name}.tries").read_text().split("\n")) - 1 for name in tasks
    }
    assert set(tries.values()) == {1}
    assert {name for name in tasks if (here.output / name).exists()} == set("be")


def test_workers_of_a_sweep_that_is_done_put_away_what_they_hold(tmp_path: Path) -> None:
    """Killed, they would leave locks behind, which Python warns of on the terminal."""
    here, graph = place(tmp_path), SweepPlan()
    for name in "ab":
        graph.add(Fake(name=name, does="tidy"))
    assert schedule(graph, here, Workers(2)) == {}
    assert {path.name for path in here.output.glob("*.tidied")} == {"a.tidied", "b.tidied"}


def test_workers_share_the_gpus_evenly() -> None:
    with Workers(3, ["2", "5"]) as workers:
        seen = {workers.submit(os.getenv, "CUDA_VISIBLE_DEVICES") for _ in range(3)}
        assert sorted(str(future.result()) for future in seen) == ["2", "2", "5"]
    with Workers(1) as workers:
        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        assert workers.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() == before


def test_a_dead_process_is_replaced() -> None:
    with Workers(1) as workers:
        pid = workers.submit(os.getpid).result()
        with pytest.raises(BrokenProcessPool):
            workers.submit(os.kill, pid, signal.SIGKILL).result()
        assert workers.submit(os.getpid).result() != pid


def signal_for_ever(pid: int) -> None:
    """Ask whether a process exists until it does not. Raise ProcessLookupError then."""
    while True:
        os.kill(pid, 0)


def test_a_call_that_begins_after_the_end_fails() -> None:
    workers = Workers(1)
    workers.shutdown(wait=False)
    with pytest.raises(RuntimeError):
        workers._call(os.getpid)


def test_without_waiting_all_processes_are_terminated() -> None:
    workers = Workers(1)
    pid = workers.submit(os.getpid).result()
    hanging = workers.submit(time.sleep, 600)
    workers.shutdown(wait=False)
    assert hanging.exception(timeout=60) is not None
    with pytest.raises(ProcessLookupError):
        signal_for_ever(pid)


@pytest.mark.parametrize(
    ("device", "visible", "count", "found"),
    [
        ("auto", None, 2, ["0", "1"]),
        ("cuda", "3,1", 2, ["3", "1"]),
        ("auto", "3,1", 0, []),
        ("cpu", None, 2, []),
        ("cuda:1", None, 2, []),
    ],
)
def test_gpus_to_share(
    device: str, visible: str | None, count: int, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert find_gpus(device) == found
