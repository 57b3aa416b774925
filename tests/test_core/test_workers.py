"""Workers, as sweeps and claims use them: what fails, what dies, and which GPU each one sees."""

import os
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.jobs import Fake
from support.sweep import children, make_options, wait_for_end

from fsbench.api.options import SweepOptions
from fsbench.core.workers import Workers
from fsbench.sweep.file import GpuShares
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.job import UserMethods, run_job
from fsbench.sweep.schedule import find_gpus, run_jobs


def run(root: Path, tasks: dict[str, str], count: int = 2) -> dict[str, str]:
    """Run jobs in workers; return title -> reason of every failed one."""
    graph, options = SweepPlan(), replace(make_options(root), jobs=count)
    options.output.mkdir()
    for name, does in tasks.items():
        graph.add(Fake(name=name, does=does))
    return run_jobs(graph, options, Workers(count))


def test_failing_jobs_leave_the_others_alone(tmp_path: Path) -> None:
    tasks = {"a": "fail", "b": "", "c": "crash", "d": "wrong", "e": "tidy"}
    failed = run(tmp_path, tasks)
    assert failed.keys() == {"a", "c", "d"}
    assert "a cannot be read" in failed["a"]
    assert failed["c"] == "ZeroDivisionError: c"
    out = make_options(tmp_path).output
    tries = {name: (out / f"{name}.tries").read_text().count("\n") for name in tasks}
    assert set(tries.values()) == {1}
    assert {name for name in tasks if (out / name).exists()} == set("be")
    assert (out / "e.tidied").exists(), "killed, a worker would leave locks behind"


def test_a_job_whose_process_dies_runs_again_and_is_named_at_the_second_death(
    tmp_path: Path,
) -> None:
    failed = run(tmp_path, {"a": "die once", "b": "die", "c": ""})
    assert failed.keys() == {"b"}
    assert failed["b"].startswith("FsbenchError: the process of the job died 2 times")
    out = make_options(tmp_path).output
    tries = [(out / f"{name}.tries").read_text().count("\n") for name in "abc"]
    assert tries == [2, 2, 1]


def test_a_process_ends_after_an_exception_and_after_nothing_else(tmp_path: Path) -> None:
    """An error of CUDA is an exception, and stays in its process."""
    run(tmp_path, {"a": "", "b": "wrong", "c": "crash", "d": ""}, count=1)
    out = make_options(tmp_path).output
    first, second, third, fourth = ((out / f"{name}.tries").read_text() for name in "abcd")
    assert first == second == third != fourth


@pytest.mark.parametrize("does", ["", "wrong", "crash"])
def test_a_job_gives_back_the_memory_of_its_gpu(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_cache = Mock()
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.empty_cache", empty_cache)
    options = make_options(tmp_path)
    options.output.mkdir()
    with suppress(ZeroDivisionError):
        run_job(UserMethods(()), Fake(name="a", does=does), options)
    empty_cache.assert_called_once_with()


def test_a_process_sees_the_gpus_that_the_options_of_its_job_name() -> None:
    with Workers(1) as workers:
        for visible in ("5", ""):
            options = SweepOptions(visible=visible)
            assert workers.submit(Fake.show_gpus, options).result() == visible


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")
def test_the_workers_of_killed_claims_end(tmp_path: Path) -> None:
    command = ["claims", "reinit_table1", "--jobs", "2", "-o", str(tmp_path)]
    claims = subprocess.Popen([sys.executable, "-m", "fsbench", *command])
    while len(workers := children(claims.pid)) < 2:
        assert claims.poll() is None
        time.sleep(0.05)
    claims.kill()
    for worker in workers:
        wait_for_end(worker)
    claims.wait()


def test_after_an_error_all_processes_are_terminated_and_none_starts() -> None:
    with suppress(ZeroDivisionError), Workers(1) as workers:
        workers.submit(os.getpid).result()
        hanging = workers.submit(time.sleep, 60)
        while workers.idle[None]:  # until its process has the call
            time.sleep(0.01)
        raise ZeroDivisionError
    assert hanging.exception(timeout=120) is not None
    with pytest.raises(CancelledError):
        workers.run(os.getpid)


@pytest.mark.parametrize(
    ("device", "visible", "count", "expected"),
    [
        ("auto", None, 2, ["0", "1"]),
        ("cuda", "3,1", 2, ["3", "1"]),
        ("auto", "3,1", 0, []),
        ("cpu", None, 2, []),
        ("cuda:1", None, 2, ["1"]),
    ],
)
def test_gpus_to_share(
    device: str,
    visible: str | None,
    count: int,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert find_gpus(SweepOptions(device=device), GpuShares()) == dict.fromkeys(expected, 1)
