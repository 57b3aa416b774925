"""benchmark under torchrun: several real processes give the records of one, at equal threads."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cli import CommandLine
from support.forged import edit

from fsbench.results.outcomes import digest_records
from fsbench.results.verification import find_entries, read_loaded

CONTROL = ["-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native"]
EPISODES = 300


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    env = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    command_line = [*command, "2", "-m", "fsbench", *arguments]
    return subprocess.run(command_line, env=env, capture_output=True, text=True, check=False)


def outcome(folder: Path) -> dict[str, Any]:
    return {
        cell.result.task: (
            digest_records(cell.records), cell.result.flags, cell.result.provenance.threads
        )
        for cell in read_loaded(folder)
    }  # fmt: skip


def test_two_processes_give_the_records_of_one(tmp_path: Path, cli: CommandLine) -> None:
    """torchrun sets OMP_NUM_THREADS=1, which --threads beats."""
    ranks, whole = tmp_path / "ranks", tmp_path / "whole"
    tasks = ["-t", "toy_scan:5w5s,toy_scan:knn,toy_tiles:knn", "--episodes", str(EPISODES)]
    call = ["benchmark", *CONTROL, *tasks, "--threads", "2", "--workers", "0", "--cache"]
    done = torchrun(*call, str(tmp_path / "theirs"), "-o", str(ranks), "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 3, "the first rank alone prints"
    assert f"/{EPISODES} episodes" not in done.stderr, "each rank has its part of the episodes"
    cli(*call, tmp_path / "ours", "-o", whole)
    assert outcome(ranks) == outcome(whole)
    assert {threads for _, _, threads in outcome(ranks).values()} == {2}


def test_ranks_replace_what_stands_there_and_may_be_more_than_blocks(
    tmp_path: Path, cli: CommandLine
) -> None:
    """One block of episodes for two ranks."""
    out = tmp_path / "results"
    call = ["episodic", *CONTROL, "-t", "toy_scan:5w1s", "--episodes", "2", "--threads", "1"]
    call += ["--cache", str(tmp_path / "cache"), "-o", str(out)]
    cli(*call)
    before = outcome(out)
    (folder,) = find_entries(out)
    edit(folder, lambda content: content["results"][0]["score"].update(mean=0.99))
    done = torchrun(*call, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert outcome(out) == before


def test_a_shard_of_ranks_is_refused(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine, tmp_path: Path
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    call = ["episodic", *CONTROL, "-t", "toy_scan:5w1s", "--shard", "0/2"]
    assert "--shard under torchrun" in cli(*call, "-o", tmp_path / "r", code=2).err
