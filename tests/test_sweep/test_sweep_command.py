"""`fsbench sweep` end to end: a plan, a kill, a resume to the same bits, a board, a failure."""

import multiprocessing
import os
import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from support import fakes
from support.cli import CommandLine
from support.sweep import (
    ENTRY,
    children,
    hashes,
    make_options,
    read,
    read_json,
    start,
    sweep,
    wait_for_end,
    wait_for_training,
    where,
    write,
)

from fsbench.api.request import Model
from fsbench.core.workers import Workers
from fsbench.results.verification import read_loaded
from fsbench.sweep.graph import plan_jobs
from fsbench.sweep.job import UserMethods, run_job

METHOD = """from typing import ClassVar
from pretrain.method import RoundMethod
class Shrink(RoundMethod):
    factor: float = 0.9
    SOURCE: ClassVar = "none"
    def round_start(self, ctx):
        if ctx.clock.round > 0:
            ctx.rewrite({n: self.factor * p for n, p in ctx.parameters.items()}, "shrunk")
"""


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs start at once, where a worker would first import torch."""
    executor = partial(ThreadPoolExecutor, 1)
    monkeypatch.setattr("fsbench.sweep.schedule.make_engine", lambda options: executor())


def list_jobs(cli: CommandLine, *words: object) -> list[tuple[str, str]]:
    """Return kind and state of every job."""
    return [(row["kind"], row["state"]) for row in cli.json("sweep", *words, "--dry-run")]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")
@pytest.mark.usefixtures("in_this_process")
def test_a_killed_worker_and_a_killed_sweep_end_at_the_same_bits(
    tmp_path: Path, cli: CommandLine, device: str
) -> None:
    """Two trainings at a time, on shares of a GPU; in the sweep that is not killed one."""
    more = {"gpus": {"pretrain": 0.5, "features": 0.5}, "submit": [ENTRY]}
    data = sweep(tmp_path, methods=("llf",), runs={"seeds": [0, 1]}, **more)
    data["pretrain"][0]["set"] |= {"deterministic": True, "plan.rounds": 10}  # time to be killed
    file, options = write(tmp_path / "sweep.yaml", data), ["--device", device]
    cli("sweep", file, *where(tmp_path, "whole"), *options)
    whole, options = hashes(tmp_path / "whole"), [*options, "--jobs", "2"]
    assert len(whole) == 4

    sweeping = start(tmp_path, "broken", file, *options)
    for worker in wait_for_training(sweeping, tmp_path / "broken"):
        os.kill(worker, signal.SIGKILL)
    _, said = sweeping.communicate(timeout=300)
    assert sweeping.returncode == 0, said
    assert hashes(tmp_path / "broken") == whole, "the job ran again in another process"

    sweeping = start(tmp_path, "left", file, *options)
    workers = wait_for_training(sweeping, tmp_path / "left")
    sweeping.kill()
    sweeping.communicate()
    for worker in workers:
        wait_for_end(worker)
    assert not list(tmp_path.glob("left/runs/*/run.json"))
    cli("sweep", file, *where(tmp_path, "left"), *options)
    assert hashes(tmp_path / "left") == whole

    jobs = list_jobs(cli, file, *where(tmp_path, "broken"), *options)
    assert list(dict(jobs)) == ["pretrain", "features", "evaluate", "submit"]
    assert {state for _, state in jobs} == {"done", "not needed any more", "on the board"}


@pytest.mark.usefixtures("in_this_process")
def test_another_sitting_computes_what_neither_board_nor_results_have(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    analysis = {"what": ["knn_depth", "sharpness"], "images": 8, "set": ["knn_depth.k=3"]}
    data = sweep(tmp_path, methods=("llf",), submit=[ENTRY], analyze=[analysis])
    file = write(tmp_path / "sweep.yaml", data)
    folders = ("--board", tmp_path / "board")
    first, second = ((file, *where(tmp_path, name), *folders) for name in ("first", "second"))
    rows = cli.json("sweep", *first, "--dry-run")
    kinds = ["pretrain", "features", "evaluate", "analyze", "submit"]
    assert [row["kind"] for row in rows] == kinds
    assert {row["state"] for row in rows} == {"missing"}
    assert all(row["seconds"] is not None for row in rows)
    assert not (tmp_path / "first").exists()

    cli("sweep", *first)
    records = {
        path.name.partition("-")[0]: path for path in tmp_path.glob("first/results/*/*/analyses/*")
    }
    assert records.keys() == {"knn_depth", "sharpness"}
    record = read_json(records["knn_depth"])
    assert record["backbone"]["ref"].startswith("run:first/runs/toy-llf")
    settings = record["question"]["settings"]
    assert (settings["k"], settings["images"]) == (3, 8)
    (entry,) = (tmp_path / "board").glob("toy-llf*")
    before = fakes.digests(entry)

    for path in records.values():
        copy = tmp_path / "second" / path.relative_to(tmp_path / "first")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    cli("sweep", *second)
    assert not (tmp_path / "second" / "runs").exists()
    states = [*["not needed any more"] * 2, "done", "done", "on the board"]
    assert [state for _, state in list_jobs(cli, *second)] == states

    (evaluation,) = data["evaluate"]
    other = {**evaluation, "tasks": [evaluation["tasks"][0].replace("5w1s", "5w2s")]}
    write(file, {**data, "evaluate": [evaluation, other], "analyze": [{**analysis, "images": 4}]})
    missing = [kind for kind, state in list_jobs(cli, *second) if state == "missing"]
    assert missing == kinds
    cli("sweep", *second)
    assert before.items() < fakes.digests(entry).items()


def test_a_plan_and_an_estimate_decode_no_image_of_the_source(
    tmp_path: Path, cli: CommandLine
) -> None:
    """All images are broken, which decoding alone reveals."""
    data = sweep(tmp_path, methods=("llf",))
    file = write(tmp_path / "sweep.yaml", data)
    for image in (tmp_path / "source").rglob("*.png"):
        image.write_bytes(b"broken")
    rows = cli.json("sweep", file, *where(tmp_path, "out"), "--dry-run")
    assert [row["kind"] for row in rows] == ["pretrain", "features", "evaluate"]
    assert all(row["seconds"] is not None for row in rows)
    tiny = [f"--set={name}={value}" for name, value in data["pretrain"][0]["set"].items()]
    said = cli("pretrain", "toy/llf", *tiny, *where(tmp_path, "runs"), code=3).err
    assert said.index("steps, about") < said.index("cannot read the image")


@pytest.mark.usefixtures("in_this_process")
def test_a_failure_is_listed_and_the_rest_is_done(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done, a sweep computes without loading a network."""
    data = sweep(tmp_path, methods=("seal",))
    bad = {"recipes": ["toy/normal"], "set": {**data["pretrain"][0]["set"], "lr": 1e38}}
    file = write(tmp_path / "sweep.yaml", {**data, "pretrain": [bad, *data["pretrain"]]})
    said = cli("sweep", file, *where(tmp_path, "out"), code=1).err
    assert "3 of 6 jobs failed" in said
    assert "is not finite" in said
    assert "a job that it needs failed" in said
    assert len(hashes(tmp_path / "out")) == 2
    monkeypatch.setattr(Model, "load", None)
    states = [state for _, state in list_jobs(cli, file, *where(tmp_path, "out"))]
    assert states == [*["missing"] * 3, "done", "not needed any more", "done"]
    shutil.rmtree(tmp_path / "out" / "runs")
    assert {state for _, state in list_jobs(cli, file, *where(tmp_path, "out"))} == {"missing"}


def test_a_method_of_ones_own_joins_the_others_with_seeds_control_and_row(
    tmp_path: Path, cli: CommandLine
) -> None:
    code = tmp_path / "mine.py"
    code.write_text(METHOD)
    data = sweep(tmp_path, methods=("normal",), runs={"seeds": [0, 1]}, submit=[ENTRY])
    file = write(tmp_path / "sweep.yaml", data)
    cli("sweep", file, *where(tmp_path, "out"), "--method", f"swr+py:{code}:Shrink")
    runs = [path.name for path in (tmp_path / "out" / "runs").iterdir()]
    assert sorted(name.split("-")[1] for name in runs) == ["normal"] * 2 + ["shrink+swr"] * 2
    rows = [path.parent for path in (tmp_path / "out" / "board").glob("*/entry.json")]
    assert sorted(row.name.split("-")[1] for row in rows) == ["normal", "shrink+swr"]
    identities = [{one.result.backbone.identity for one in read_loaded(row)} for row in rows]
    assert [len(seeds) for seeds in identities] == [2, 2]


def test_a_run_on_two_ranks_is_the_same_after_the_death_of_both(tmp_path: Path) -> None:
    """The launcher of jobs on several GPUs, with processes that share a step on the CPU."""
    file = read(sweep(tmp_path, methods=("llf",)))
    whole, broken = (make_options(tmp_path, name, gpus=2) for name in ("whole", "broken"))
    job = next(job for job in plan_jobs(file, whole).jobs.values() if job.KIND == "pretrain")
    for options in (whole, broken):
        options.output.mkdir()
    assert run_job(UserMethods(()), job, whole) == ""
    record = read_json(whole.output / "runs" / job.title / "run.json")
    assert record["processes"] == 2

    with Workers(1) as workers:
        call = workers.submit(run_job, UserMethods(()), job, broken)
        while not list(broken.output.glob("runs/*/checkpoint.json")):
            assert not call.done(), call.result()
        (worker,) = multiprocessing.active_children()
        for rank in children(worker.pid or 0):
            os.kill(rank, signal.SIGKILL)
        assert re.match("FsbenchError: rank . of 2: ", call.result())
        assert workers.submit(run_job, UserMethods(()), job, broken).result() == ""
    assert hashes(broken.output) == hashes(whole.output)
