"""`fsbench sweep` end to end: a plan, a kill, a resume to the same bits, a board, a failure."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.cli import CommandLine
from support.sweep import ENTRY, hash_results, hashes, read_json, sweep, write

from fsbench.results.verification import read_cells

METHOD = """from typing import ClassVar
from pretrain.method import RoundMethod
class Shrink(RoundMethod):
    factor: float = 0.9
    SOURCE: ClassVar = "none"
    def round_start(self, ctx):
        if ctx.clock.round > 0:
            ctx.rewrite({n: self.factor * p for n, p in ctx.parameters.items()}, "shrunk")
"""
SUBMIT = {**ENTRY, "name": "tiny-{method}-s{seed}"}


def where(root: Path, output: str) -> list[str]:
    return ["-o", str(root / output), "--cache", str(root / "cache")]


def start(root: Path, output: str, file: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "fsbench", "sweep", str(file), *where(root, output)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def children(pid: int) -> list[int]:
    """Processes that the threads of a process started (Linux)."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in files for child in path.read_text().split()]


def kill_in_training(sweeping: subprocess.Popen[bytes], output: Path) -> None:
    """SIGKILL the workers of a sweep as soon as a run has written a checkpoint."""
    until = time.monotonic() + 120
    while not list(output.glob("runs/*/checkpoint.json")):
        assert time.monotonic() < until, "no checkpoint was written"
        assert sweeping.poll() is None, sweeping.stderr and sweeping.stderr.read()
        time.sleep(0.01)
    for child in children(sweeping.pid):
        os.kill(child, signal.SIGKILL)


def table(shown: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(shown)
    return rows


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")
def test_a_killed_worker_and_a_killed_sweep_end_at_the_same_bits(
    tmp_path: Path, cli: CommandLine
) -> None:
    file = write(tmp_path / "sweep.yaml", sweep(tmp_path, submit=SUBMIT))
    cli("sweep", file, *where(tmp_path, "whole"))
    whole = hashes(tmp_path / "whole")
    assert len(whole) == 4

    sweeping = start(tmp_path, "broken", file)
    kill_in_training(sweeping, tmp_path / "broken")
    _, said = sweeping.communicate(timeout=300)
    assert sweeping.returncode == 1
    assert b"jobs failed" in said
    cli("sweep", file, *where(tmp_path, "broken"))
    assert hashes(tmp_path / "broken") == whole

    rows = table(cli("sweep", file, *where(tmp_path, "broken"), "--dry-run", "--json").out)
    assert [row["kind"] for row in rows].count("pretrain") == 2
    assert {row["state"] for row in rows} <= {"done", "on the board"}


def test_a_plan_and_a_board_that_needs_no_run_again(tmp_path: Path, cli: CommandLine) -> None:
    data = sweep(tmp_path, submit=SUBMIT)
    file = write(tmp_path / "sweep.yaml", data)
    rows = table(cli("sweep", file, *where(tmp_path, "new"), "--dry-run", "--json").out)
    assert [row["kind"] for row in rows] == [*["pretrain", "evaluate"] * 2, *["submit"] * 2]
    assert {row["state"] for row in rows} == {"missing"}
    assert all(row["seconds"] is not None for row in rows)
    assert not (tmp_path / "new").exists()

    cli("sweep", file, *where(tmp_path, "one"), "--board", tmp_path / "board")
    names = {path.parent.name for path in (tmp_path / "board").glob("*/entry.json")}
    assert {name.partition("-fields")[0] for name in names} == {"tiny-seal", "tiny-llf"}

    board = ["--board", str(tmp_path / "board")]
    cli("sweep", file, *where(tmp_path, "elsewhere"), *board)
    assert not (tmp_path / "elsewhere" / "runs").exists()
    rows = table(
        cli("sweep", file, *where(tmp_path, "elsewhere"), *board, "--dry-run", "--json").out
    )
    states = {(row["kind"], row["state"]) for row in rows}
    idle = ("pretrain", "not needed any more")
    assert states == {idle, ("evaluate", "on the board"), ("submit", "on the board")}


def test_another_sitting_adds_to_an_entry_and_takes_nothing_away(
    tmp_path: Path, cli: CommandLine
) -> None:
    data = sweep(tmp_path, methods=("llf",), submit=SUBMIT)
    (evaluation,) = data["evaluate"]
    board = ["--board", str(tmp_path / "board")]
    file = write(tmp_path / "sweep.yaml", data)
    cli("sweep", file, *where(tmp_path, "first"), *board)
    (entry,) = (tmp_path / "board").glob("tiny-*")
    before = hash_results(entry)

    other = {**evaluation, "tasks": [evaluation["tasks"][0].replace("5w1s", "5w2s")]}
    write(file, {**data, "evaluate": [evaluation, other]})
    cli("sweep", file, *where(tmp_path, "elsewhere"), *board)
    assert before.items() < hash_results(entry).items()
    assert len(hash_results(entry)) == 2 * len(before)


def test_analyses_are_kept_beside_the_board_and_outlive_the_runs(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    analysis = {"what": ["knn_depth", "sharpness"], "images": 8, "set": ["knn_depth.k=3"]}
    data = sweep(tmp_path, submit=SUBMIT, analyze=[{**analysis, "only": ["toy-seal*"]}])
    file = write(tmp_path / "sweep.yaml", data)
    options = ["--board", str(tmp_path / "board"), "--findings", str(tmp_path / "kept")]
    cli("sweep", file, *where(tmp_path, "one"), *options)
    records = {path.name.partition("-")[0]: path for path in tmp_path.glob("kept/*/*/analyses/*")}
    assert {path.parts[-4].partition("-fields")[0] for path in records.values()} == {"toy-seal"}
    assert records.keys() == {"knn_depth", "sharpness"}
    record = read_json(records["knn_depth"])
    assert record["backbone"]["ref"].startswith("run:one/runs/toy-seal")
    settings = record["question"]["settings"]
    assert (settings["k"], settings["images"]) == (3, 8)

    cli("sweep", file, *where(tmp_path, "elsewhere"), *options)
    assert not (tmp_path / "elsewhere" / "runs").exists()
    other = {**data, "analyze": [{**data["analyze"][0], "images": 4}]}
    file = write(tmp_path / "other.yaml", other)
    rows = table(
        cli("sweep", file, *where(tmp_path, "elsewhere"), *options, "--dry-run", "--json").out
    )
    missing = [row["kind"] for row in rows if row["state"] == "missing"]
    assert missing == ["pretrain", "analyze"]


def test_a_failure_is_listed_and_the_rest_is_done(tmp_path: Path, cli: CommandLine) -> None:
    data = sweep(tmp_path, methods=("seal",))
    bad = {"recipes": ["toy/normal"], "set": {**data["pretrain"][0]["set"], "lr": 1e38}}
    file = write(tmp_path / "sweep.yaml", {**data, "pretrain": [bad, *data["pretrain"]]})
    said = cli("sweep", file, *where(tmp_path, "out"), code=1).err
    assert "2 of 4 jobs failed" in said
    assert "is not finite" in said
    assert "a job that it needs failed" in said
    assert len(hashes(tmp_path / "out")) == 2
    rows = table(cli("sweep", file, *where(tmp_path, "out"), "--dry-run", "--json").out)
    assert [row["state"] for row in rows] == ["missing", "missing", "done", "done"]


def test_a_sweep_without_a_file_is_refused(cli: CommandLine) -> None:
    cli("sweep", code=2)


def test_a_method_of_ones_own_joins_the_others_with_seeds_control_and_row(
    tmp_path: Path, cli: CommandLine
) -> None:
    code = tmp_path / "mine.py"
    code.write_text(METHOD)
    data = sweep(tmp_path, methods=("normal",), runs={"seeds": [0, 1]}, submit=ENTRY)
    file = write(tmp_path / "sweep.yaml", data)
    cli("sweep", file, *where(tmp_path, "out"), "--method", f"py:{code}:Shrink")
    runs = [path.name for path in (tmp_path / "out" / "runs").iterdir()]
    assert sorted(name.split("-")[1] for name in runs) == ["normal"] * 2 + ["shrink"] * 2
    rows = [path.parent for path in (tmp_path / "out" / "board").glob("*/entry.json")]
    assert sorted(row.name.split("-")[1] for row in rows) == ["normal", "shrink"]
    assert {len({cell.result.backbone.identity for cell in read_cells(row)}) for row in rows} == {2}
