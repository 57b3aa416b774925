"""`fsbench pretrain` under torchrun: one run, killed and stopped."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.pretrain import equal, weights
from support.ranks import RANKS, torchrun, under_torchrun

CALL = ("-m", "fsbench", "pretrain", "toy/seal", "--set", "width=2", "--threads", "1", "-o")


def test_torchrun_makes_one_run_and_one_table(tmp_path: Path) -> None:
    done = torchrun(*CALL, str(tmp_path), "--set", "plan.epoch_images=64", "--json")
    record = json.loads(done.stdout)
    assert record["processes"] == RANKS
    assert record["steps"] == 16
    assert done.stderr.count("16 steps, about") == 1
    names = {path.name for path in (tmp_path / "toy-seal-s0").iterdir()}
    assert {"run.json", "model.safetensors", "checkpoint.json", "log.jsonl"} <= names


@pytest.mark.slow
def test_a_run_that_loses_a_rank_or_is_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    torchrun(*CALL, str(tmp_path / "whole"))
    run, left = tmp_path / "cut" / "toy-seal-s0", tmp_path / "cut" / "toy-seal-s0/log.jsonl"
    for epochs, says in ((1, "Signal 9 (SIGKILL)"), (3, "stopped by SIGTERM")):
        command, environment = under_torchrun(*CALL, str(tmp_path / "cut"))
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as job:
            while not left.exists() or left.read_text().count("\n") < epochs:
                time.sleep(0.01)
            if "SIGKILL" in says:
                os.kill(child_of_rank(1, job.pid), signal.SIGKILL)
            else:
                job.terminate()
            assert says in job.communicate(timeout=120)[1]
        assert job.returncode != 0
        assert not (run / "run.json").exists()
    torchrun(*CALL, str(tmp_path / "cut"))
    assert equal(weights(run), weights(tmp_path / "whole" / "toy-seal-s0"))


def child_of_rank(rank: int, parent: int) -> int:
    """The process that torchrun gave the rank."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    variable = f"RANK={rank}".encode()
    return next(
        int(child)
        for child in children
        if variable in Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    )
