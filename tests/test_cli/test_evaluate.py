"""benchmark, episodic and probe through the command line, on generated targets."""

import re
from pathlib import Path

from support.cli import CommandLine
from support.fakes import digests
from support.reading import episode_records, read

CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")


def test_benchmark_runs_probe_and_episodes_and_prints_one_table(
    tmp_path: Path, cli: CommandLine
) -> None:
    out = tmp_path / "results"
    task = ("-t", "toy_scan", "--shots", "1,5", "--limit", "3")
    printed = cli("benchmark", *CONTROL, *task, "-o", out)
    assert all(name in printed.out for name in ("toy_scan:5w1s", "toy_scan:probe"))
    first, *lines, last = printed.err.splitlines()
    assert first == "fsbench benchmark: starting"
    assert last == f"saved to {out}/; next: fsbench show {out}"
    work = (r"\[1/3\] toy_scan features: ", r"\[1/3\] toy_scan:probe: 3/3, ")
    for start in (*work, r"\[3/3\] toy_scan:5w5s linear: 3/3, \S+ episodes/s"):
        assert any(re.match(start, line) for line in lines), start
    results = {str(result.task): result for result in read(out)}
    episodic = [f"toy_scan:5w{shots}s/linear@ibm" for shots in (1, 5)]
    assert results.keys() == {"toy_scan:probe", *episodic}
    assert all("limited" in result.flags for result in results.values())
    assert results[episodic[0]].score.n == 3
    assert results[episodic[0]].backbone.random_init == 0


def test_json_is_a_list_of_results_with_the_mean(tmp_path: Path, cli: CommandLine) -> None:
    task = ("-t", "toy_scan:5w1s", "--episodes", "2", "-o", tmp_path)
    (record,) = cli.json("episodic", *CONTROL, *task)
    assert record["mean"] == episode_records(tmp_path).accuracy.mean()
    assert record["flags"] == ["short"]


def test_more_episodes_extend_a_cell_and_a_complete_cell_is_not_run_again(
    tmp_path: Path, cli: CommandLine
) -> None:
    out, whole = tmp_path / "grown", tmp_path / "whole"
    cell = (*CONTROL, "-t", "toy_scan:5w1s")
    cli("episodic", *cell, "--episodes", "2", "-o", out)
    cli("episodic", *cell, "--episodes", "5", "-o", out)
    cli("episodic", *cell, "--episodes", "5", "-o", whole)
    assert digests(out) == digests(whole)
    assert "episodes/s" not in cli("episodic", *cell, "--episodes", "4", "-o", out).err


def test_shards_merge_to_the_records_of_one_process(tmp_path: Path, cli: CommandLine) -> None:
    """Three blocks of episodes and a probe for eight shards: a part without work is a result."""
    tasks = ("-t", "toy_scan:5w1s,toy_tiles:5w5s/ridge,toy_tiles:knn")
    command = ("benchmark", *CONTROL, *tasks, "--cache", tmp_path / "cache")
    parts = [tmp_path / f"part{i}" for i in range(8)]
    for i, part in enumerate(parts):
        shown = cli(*command, "--shard", f"{i}/8", "-o", part).err
    assert not list(parts[7].iterdir())
    assert "part 7/8 has 0 results; fsbench results merge" in shown
    assert {flag for result in read(parts[1]) for flag in result.flags} >= {"shard"}
    merged, whole = tmp_path / "merged", tmp_path / "whole"
    cli("results", "merge", *parts, "-o", merged)
    cli(*command, "-o", whole)
    assert digests(merged) == digests(whole)
    assert [result.score for result in read(merged)] == [result.score for result in read(whole)]


def test_a_model_has_its_name_in_progress_notes_and_tables(
    tmp_path: Path, cli: CommandLine
) -> None:
    task = ("-t", "toy_scan:5w1s", "--episodes", "20", "--input-size", "32", "-o", tmp_path)
    control = ("-m", "fsbench/toy_resnet", "--random-init", "1")
    shown = cli("episodic", *control, "--name", "mine", *task)
    assert "[1/1] mine toy_scan:5w1s linear: 20/20" in shown.err
    assert "\nmine, fsbench/toy_resnet: " in shown.err
    assert "\nmine toy_scan:5w1s/linear@ibm 32px: 1 of 20 episodes predicted one class" in shown.err
    assert "toy_resnet" not in shown.out
