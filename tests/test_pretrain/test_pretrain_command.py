"""`fsbench pretrain` from outside: one table, errors with exit codes."""

from pathlib import Path

import pytest
from support.cli import CommandLine
from support.pretrain import record

from pretrain.training import cost

SMALL = ("--set", "width=2", "--set", "plan.epoch_images=64")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the toy source, so that only one run draws it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache(drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSBENCH_CACHE", str(drawn))


def test_a_run_prints_one_table_and_again_the_same(tmp_path: Path, cli: CommandLine) -> None:
    call = ("pretrain", "toy/seal", *SMALL, "-o", tmp_path, "--threads", "1", "--seed", "3")
    first = cli(*call)
    folder = tmp_path / "toy-seal-s3"
    digest = record(folder)["weights_hash"][:12]
    for text in ("toy/seal", "2 x 4", "16", digest, f"run:{folder}"):
        assert text in first.out
    assert "16 steps, about" in first.err
    second = cli(*call)
    assert second.out == first.out
    assert "finished already" in second.err


def test_a_run_of_over_an_hour_wants_yes(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "measure_step", lambda ctx: 1000.0)
    call = ("pretrain", "toy/normal", *SMALL, "-o", tmp_path)
    text = cli(*call, code=2).err
    assert "16 steps, about 18.3 h" in text
    assert "--yes" in text
    cli(*call, "--yes")


def test_methods_compose_on_the_command_line(tmp_path: Path, cli: CommandLine) -> None:
    call = ("pretrain", "toy/normal", *SMALL, "--method", "swr+weight_compander", "-o", tmp_path)
    facts = cli.json(*call, "--set", "swr.lam=1e-2")
    assert facts["recipe"] == "toy/weight_compander+swr"
    assert facts["folder"] == str(tmp_path / "toy-weight_compander+swr-s0")
    fields = {m["name"]: m for m in facts["recipe_fields"]["methods"]}
    assert fields["swr"]["lambda_f"] == 0.01
