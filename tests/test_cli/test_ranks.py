"""benchmark under torchrun: several real processes give the records of one, at equal threads."""

import json
import os
import subprocess
import sys
from collections import Counter
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pytest
from support.cli import CommandLine
from support.forged import edit
from torch.distributed import HashStore

from fsbench.core.distributed import Ranks
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import find_entries, read_loaded

CONTROL = ["-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native"]


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


COUNTED = """
import os
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 16, 3, stride=2)

    def forward(self, x):
        with open(os.environ["FORWARDED"], "a") as file:
            file.write(f"{os.environ.get('RANK')} {len(x)}\\n")
        return self.conv(x).relu().mean((2, 3))
"""
"""A network that notes which rank forwards how many images."""


def test_two_processes_give_the_records_of_one(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share all blocks of images; torchrun sets OMP_NUM_THREADS=1, which --threads beats."""
    (tmp_path / "counted.py").write_text(COUNTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    ranks, whole, forwarded = tmp_path / "ranks", tmp_path / "whole", tmp_path / "forwarded"
    tasks = ["-t", "toy_scan:5w5s,toy_scan:knn,toy_tiles:knn", "--episodes", "300"]
    images = ["--input-size", "32", "--mean", "half", "--std", "half", "-b", "16"]
    call = ["benchmark", "-m", "py:counted:Net", *images, *tasks]
    call += ["--threads", "2", "--workers", "0"]
    monkeypatch.setenv("FORWARDED", str(forwarded))
    done = torchrun(*call, "--cache", str(tmp_path / "theirs"), "-o", str(ranks), "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 3, "the first rank alone prints"
    monkeypatch.setenv("FORWARDED", str(tmp_path / "alone"))
    cli(*call, "--cache", tmp_path / "ours", "-o", whole)
    assert outcome(ranks) == outcome(whole)
    assert {threads for _, _, threads in outcome(ranks).values()} == {2}
    blocks, alone = (
        Counter(line.split()[0] for line in file.read_text().splitlines() if line.endswith("16"))
        for file in (forwarded, tmp_path / "alone")
    )
    assert sum(blocks.values()) == alone["None"] > 20, "each image once"
    assert abs(blocks["0"] - blocks["1"]) <= 2, "at most one block of each data set apart"


def test_no_rank_is_idle_while_a_block_is_left() -> None:
    """Eight ranks, four tasks of six blocks that take 1, 5, 20 and 50 seconds each."""
    blocks = [(task, block) for task in (1, 5, 20, 50) for block in range(6)]
    store, queue, computed = HashStore(), list[tuple[int, int, Any]](), list[tuple[int, int]]()
    for rank in range(8):
        heappush(queue, (0, rank, Ranks(rank, 8, "gloo", store).share(blocks, "tasks")))
    ends = list[int]()
    while queue:
        now, rank, share = heappop(queue)
        if block := next(share, None):
            computed.append(block)
            heappush(queue, (now + block[0], rank, share))
        else:
            ends.append(now)
    assert sorted(computed) == blocks
    assert max(ends) - min(ends) <= 50, "at most the longest block"
    assert max(ends) <= 6 * (1 + 5 + 20 + 50) / 8 + 50


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
