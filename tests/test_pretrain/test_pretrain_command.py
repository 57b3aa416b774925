"""`fsbench pretrain` from outside: one table, errors with exit codes, kill -9 and resume."""

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from support import cli

from pretrain.training import cost

SMALL = ["--set", "width=2", "--set", "plan.epoch_images=64"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the toy source, so that only one run draws it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache(drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSBENCH_CACHE", str(drawn))


command = partial(cli.call, "pretrain")


def test_a_run_prints_one_table_and_again_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["toy/seal", *SMALL, "-o", str(tmp_path), "--threads", "1", "--seed", "3"]
    assert command(*call) == 0
    first = capsys.readouterr()
    folder = tmp_path / "toy-seal-s3"
    record = json.loads((folder / "run.json").read_text())
    for text in ("toy/seal", "2 x 4", "16", record["weights_hash"][:12], f"run:{folder}"):
        assert text in first.out
    assert "16 steps, about" in first.err
    assert command(*call) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "finished already" in second.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["seal"], 2, "choose one of full/seal, paper/seal, pilot/seal"),
        (["toy/seel"], 2, "did you mean 'toy/seal'"),
        (["toy/seal", "--set", "plan.epochs=3"], 2, "at least 4 epochs per round"),
        (["toy/seal", "--set", "seed=1", "--seed", "1"], 2, "seed is set twice"),
        (["toy/seal", "--device", "tpu"], 2, "device 'tpu' is not available"),
        (["pilot/normal"], 3, "tinyimagenet"),
    ],
)
def test_errors_name_the_fix(
    arguments: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments, "-o", str(tmp_path / "runs")) == code
    text = capsys.readouterr().err
    assert says in text
    assert "fix:" in text
    assert "Traceback" not in text
    assert not (tmp_path / "runs").exists()


def test_a_folder_of_another_recipe_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [*SMALL, "--set", "plan.rounds=1", "-o", str(tmp_path)]
    assert command("toy/normal", *small) == 0
    (tmp_path / "toy-normal-s0" / "run.json").unlink()
    assert command("toy/normal", *small, "--set", "lr=0.5") == 2
    assert "recipe.lr 0.05 -> 0.5" in capsys.readouterr().err


def test_a_run_of_over_an_hour_wants_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "measure_step", lambda ctx: 1000.0)
    assert command("toy/normal", *SMALL, "-o", str(tmp_path)) == 2
    text = capsys.readouterr().err
    assert "16 steps, about 18.3 h" in text
    assert "--yes" in text
    assert command("toy/normal", *SMALL, "-o", str(tmp_path), "--yes") == 0


def test_kill_9_and_the_same_command_end_at_the_same_bytes(tmp_path: Path) -> None:
    def call(folder: str) -> list[str]:
        sets = ["--set", "width=2", "--set", "plan.epoch_images=160"]
        return ["toy/seal", *sets, "-o", str(tmp_path / folder), "--threads", "1"]

    assert command(*call("whole")) == 0
    start = f"from fsbench.cli.main import run; run({['pretrain', *call('killed')]!r})"
    running = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.DEVNULL)
    whole, killed = (tmp_path / folder / "toy-seal-s0" for folder in ("whole", "killed"))
    while not (killed / "checkpoint.json").exists() and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert (killed / "checkpoint.json").exists()
    assert not (killed / "run.json").exists()
    assert command(*call("killed")) == 0
    for name in ("model.safetensors", "log.jsonl", "rewrites.jsonl"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()


def test_methods_compose_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["toy/normal", *SMALL, "--method", "swr+weight_compander", "-o", str(tmp_path), "--json"]
    assert command(*call, "--set", "swr.lam=1e-2") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["recipe"] == "toy/weight_compander+swr"
    assert record["folder"] == str(tmp_path / "toy-weight_compander+swr-s0")
    fields = {m["name"]: m for m in record["recipe_fields"]["methods"]}
    assert fields["swr"]["lambda_f"] == 0.01
