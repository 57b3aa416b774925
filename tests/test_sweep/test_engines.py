"""The local engine: a process that dies takes its job with it and nothing else."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from support.jobs import Fake
from support.sweep import place

from fsbench.sweep.engines import LocalEngine
from fsbench.sweep.file import SweepFile
from fsbench.sweep.graph import JobGraph, SweepPlan
from fsbench.sweep.schedule import Scheduler
from fsbench.sweep.status import StateFiles


def file(gpus: float = 0.0, retries: int = 1) -> SweepFile:
    jobs = {"evaluate": {"gpus": gpus, "retries": retries}}
    return SweepFile.model_validate({"backbones": [{"model": "a"}], "jobs": jobs})


def kill_when(path: Path) -> None:
    """SIGKILL the process that writes its number into `path`, as soon as it does."""
    while not (path.exists() and path.read_text().split()):
        time.sleep(0.02)
    os.kill(int(path.read_text().split()[0]), signal.SIGKILL)


def test_killed_workers_and_failing_jobs_leave_the_others_alone(tmp_path: Path) -> None:
    here, graph = place(tmp_path), JobGraph()
    tasks = {"a": "hang once", "b": "", "c": "fail", "d": "crash", "e": "", "f": "wrong"}
    for name, does in tasks.items():
        graph.add(Fake(name=name, does=does))
    killer = threading.Thread(target=kill_when, args=(here.output / "a.tries",))
    killer.start()
    engine = LocalEngine(file(), here, jobs=2, gpus=0)
    failed = Scheduler(file(), SweepPlan(graph, {}), engine, StateFiles(here.output)).run()
    killer.join()
    said = {graph.jobs[key].title: reason for key, reason in failed.items()}
    assert said.keys() == {"c", "d", "f"}
    assert "c cannot be read" in said["c"]
    assert said["d"] == "ZeroDivisionError: d"
    tries = {
        name: len((here.output / f"{name}.tries").read_text().split("\n")) - 1 for name in tasks
    }
    assert tries == {"a": 2, "b": 1, "c": 2, "d": 2, "e": 1, "f": 1}
    assert {name for name in tasks if (here.output / name).exists()} == set("abe")


def test_workers_of_a_sweep_that_is_done_put_away_what_they_hold(tmp_path: Path) -> None:
    """Killed, they would leave locks behind, which Python warns of on the terminal."""
    here, graph = place(tmp_path), JobGraph()
    for name in "ab":
        graph.add(Fake(name=name, does="tidy"))
    engine = LocalEngine(file(), here, jobs=2, gpus=0)
    assert Scheduler(file(), SweepPlan(graph, {}), engine, StateFiles(here.output)).run() == {}
    assert {path.name for path in here.output.glob("*.tidied")} == {"a.tidied", "b.tidied"}


def test_shares_of_gpus_bound_how_many_jobs_run_at_once(tmp_path: Path) -> None:
    engine = LocalEngine(file(gpus=0.4), place(tmp_path), jobs=8, gpus=2)
    taken = []
    for i in range(8):
        job = Fake(name=f"{i}")
        if not engine.takes(job):
            break
        slot = next(slot for slot in engine.slots if slot.job is None)
        slot.job, slot.gpu = job, engine.free_gpu(job)
        taken.append(slot.gpu)
    assert taken == [0, 0, 1, 1]
    assert LocalEngine(file(gpus=0.4), place(tmp_path), jobs=1, gpus=0).share(Fake(name="a")) == 0
    on_cpu = place(tmp_path, device="cpu")
    assert LocalEngine(file(gpus=0.4), on_cpu, jobs=1, gpus=2).share(Fake(name="a")) == 0


@pytest.mark.parametrize(("gpus", "device"), [(0.5, "cuda:0"), (0.0, "cpu")])
def test_a_job_runs_where_its_share_is(
    tmp_path: Path, gpus: float, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes: list[str] = []
    engine = LocalEngine(file(gpus=gpus), place(tmp_path), jobs=1, gpus=1)
    pool = engine.slots[0].pool
    monkeypatch.setattr(pool, "submit", lambda call, job, place: nodes.append(place.device))
    engine.start(Fake(name="a"))
    assert nodes == [device]
