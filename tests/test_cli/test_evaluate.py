"""benchmark, episodic and probe through the command line, on generated targets."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.cli import call
from support.fakes import digests
from support.reading import episode_records, read

CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")


def test_benchmark_runs_probe_and_episodes_and_prints_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "results")
    task = ("-t", "toy_scan", "--shots", "1,5", "--limit", "3")
    assert call("benchmark", *CONTROL, *task, "-o", out) == 0
    printed = capsys.readouterr()
    shown = printed.out
    assert "toy_scan:5w1s" in shown
    assert "toy_scan:probe" in shown
    lines = printed.err.splitlines()
    assert lines[0] == "fsbench benchmark: starting"
    for start in ("[1/3] toy_scan features: ", "[1/3] toy_scan:probe: 3/3, "):
        assert any(line.startswith(start) for line in lines), start
    assert any(
        re.match(r"\[3/3\] toy_scan:5w5s linear: 3/3, \S+ episodes/s", line) for line in lines
    )
    assert lines[-1] == f"saved to {out}/; next: fsbench show {out}"
    results = {str(result.task): result for result in read(Path(out))}
    assert set(results) == {
        "toy_scan:probe",
        "toy_scan:5w1s/linear@ibm",
        "toy_scan:5w5s/linear@ibm",
    }
    assert all("limited" in result.flags for result in results.values())
    assert results["toy_scan:5w1s/linear@ibm"].score.n == 3
    assert results["toy_scan:5w1s/linear@ibm"].backbone.random_init == 0


def test_json_is_a_list_of_results_with_the_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "results")
    cell = ("-t", "toy_scan:5w1s", "--episodes", "2")
    assert call("episodic", *CONTROL, *cell, "-o", out, "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["mean"] == episode_records(out).accuracy.mean()
    assert record["flags"] == ["short"]


def test_more_episodes_extend_a_cell_and_a_complete_cell_is_not_run_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, whole = tmp_path / "grown", tmp_path / "whole"
    cell = (*CONTROL, "-t", "toy_scan:5w1s")
    assert call("episodic", *cell, "--episodes", "2", "-o", str(out)) == 0
    assert call("episodic", *cell, "--episodes", "5", "-o", str(out)) == 0
    assert call("episodic", *cell, "--episodes", "5", "-o", str(whole)) == 0
    assert digests(out) == digests(whole)
    capfd.readouterr()
    assert call("episodic", *cell, "--episodes", "4", "-o", str(out)) == 0
    assert "episodes/s" not in capfd.readouterr().err


def test_shards_merge_to_the_records_of_one_process(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Three blocks of episodes and a probe for eight shards: a part without work is a result."""
    tasks = ("-t", "toy_scan:5w1s,toy_tiles:5w5s/ridge,toy_tiles:knn")
    command = ("benchmark", *CONTROL, *tasks, "--cache", tmp_path / "cache")
    parts = [tmp_path / f"part{i}" for i in range(8)]
    for i, part in enumerate(parts):
        assert call(*command, "--shard", f"{i}/8", "-o", part) == 0
    assert not list(parts[7].iterdir())
    assert "part 7/8 has 0 results; fsbench results merge" in capfd.readouterr().err
    assert {flag for result in read(parts[1]) for flag in result.flags} >= {"shard"}
    merged, whole = tmp_path / "merged", tmp_path / "whole"
    assert call("results", "merge", *parts, "-o", merged) == 0
    assert call(*command, "-o", whole) == 0
    assert digests(merged) == digests(whole)
    assert [result.score for result in read(merged)] == [result.score for result in read(whole)]


@pytest.mark.parametrize("empty", [0, 3, 7])
def test_parts_that_are_all_empty_are_no_result(
    empty: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = [tmp_path / f"part{i}" for i in range(empty + 2)]
    for part in parts:
        part.mkdir()
    assert call("results", "merge", *parts, "-o", tmp_path / "merged") == 2
    assert "holds no results" in capfd.readouterr().err


def test_a_killed_evaluation_goes_on_and_ends_with_the_same_records(tmp_path: Path) -> None:
    """kill -9 as soon as the first block of episodes is on disk."""
    command = [sys.executable, "-m", "fsbench", "episodic", *CONTROL]
    command += ["-t", "toy_scan:5w20s", "--episodes", "600", "--threads", "1"]
    env = os.environ | {"FSBENCH_CACHE": str(tmp_path / "cache")}
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [*command, "-o", str(killed)], env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    while process.poll() is None and not list(killed.rglob("*.arrow.zst")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    assert not list(killed.rglob("entry.json")), "a killed run shows no result"
    for folder in (killed, whole):
        subprocess.run([*command, "-o", str(folder)], env=env, check=True, capture_output=True)
    assert digests(killed) == digests(whole)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("-m", "tim/resnet18", "-t", "toy_scan:5w1s"), 2, "timm/"),
        (("-m", "fsbench/toy_resnet", "-t", "toy_scan:5w1s"), 2, "--random-init"),
        ((*CONTROL, "-t", "toy_skan"), 2, "did you mean 'toy_scan'"),
        ((*CONTROL, "-t", "toy_scan:5w1s", "--shots", "1"), 2, "--shots"),
        ((*CONTROL, "-t", "toy_scan", "--shots", "one"), 2, "shots 'one'"),
        ((*CONTROL, "-t", "toy_scan", "--heads", "affin"), 2, "linear"),
        ((*CONTROL, "-t", "toy_scan", "--shard", "2/2"), 2, "i/n"),
        ((*CONTROL, "-t", "toy_scan", "--input-size", "big"), 2, "native"),
        ((*CONTROL, "-t", "toy_scan:5w500s"), 3, "500"),
        ((*CONTROL, "-t", "toy_scan:50w1s"), 3, "50"),
        ((*CONTROL, "-t", "toy_scan:5w1s,toy_tiles:5w500s"), 3, "toy_tiles"),
        ((*CONTROL, "-t", "eurosat:5w1s"), 3, "fsbench data download eurosat"),
        ((*CONTROL, "-t", "folder:no/such/folder"), 3, "no/such/folder"),
        (("-m", "missing.pth", "--arch", "resnet18", "-t", "toy_scan:5w1s"), 2, "missing.pth"),
    ],
)
def test_errors_come_before_any_work_with_fix_and_exit_code(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if "--input-size" not in arguments:
        arguments = (*arguments, "--input-size", "32")
    assert call("episodic", *arguments, "-o", str(tmp_path / "results")) == code
    shown = capfd.readouterr().err
    assert said in shown
    assert "fix:" in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "results").exists()


def test_a_spec_file_gives_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    task = ("-t", "toy_scan:5w1s", "--heads", "ridge", "--set", "ridge.lam=2", "--seed", "4")
    assert call("episodic", *CONTROL, *task, "--limit", "6", "-o", str(first)) == 0
    task = f"{first}:toy_scan:5w1s"
    model = ("-m", "fsbench/toy_resnet", "--random-init", "0")
    assert call("benchmark", *model, "--spec", task, "-o", str(again)) == 0
    assert digests(again) == digests(first)
    capsys.readouterr()
    assert call("episodic", *model, "--spec", task, "--seed", "5", "-o", str(again)) == 2
    assert "which states them all" in capsys.readouterr().err


def test_a_model_has_its_name_in_progress_notes_and_tables(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = ("-t", "toy_scan:5w1s", "--episodes", "20", "--input-size", "32", "-o", tmp_path)
    control = ("-m", "fsbench/toy_resnet", "--random-init", "1")
    assert call("episodic", *control, "--name", "mine", *task) == 0
    shown = capfd.readouterr()
    assert "[1/1] mine toy_scan:5w1s linear: 20/20" in shown.err
    assert "\nmine, fsbench/toy_resnet: " in shown.err
    assert "\nmine toy_scan:5w1s/linear@ibm 32px: 1 of 20 episodes predicted one class" in shown.err
    assert "toy_resnet" not in shown.out


def test_several_models_have_their_difference_by_data_set(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks = ("-t", "toy_tiles:5w1s/ridge,toy_scan:5w1s/ridge,toy_tiles:5w5s/ridge")
    for seed in (0, 1):
        control = ("-m", "fsbench/toy_resnet", "--random-init", seed, "--name", f"net{seed}")
        more = ("--episodes", "4", "--input-size", "32", "-o", tmp_path)
        assert call("episodic", *control, *tasks, *more) == 0
    capfd.readouterr()
    assert call("show", tmp_path) == 0
    header, *rows = [line.split() for line in capfd.readouterr().out.splitlines()[2:] if line]
    assert header == ["task", "net0", "net1", "difference"]
    assert [row[0].partition("/")[0] for row in rows[1:]] == [
        "toy_scan:5w1s", "toy_tiles:5w1s", "toy_tiles:5w5s",
    ]  # fmt: skip
