"""Affine tuning through the command line: asked for, estimated, resumed, submitted, refused."""

from pathlib import Path

import pytest
from support import fakes
from support.cli import CommandLine
from support.fakes import digests
from support.reading import read

from fsbench.core.schema import Result
from protocols.episodic import affine as finetune_affine

CONTROL = ("--random-init", "0", "-m")
NET = (*CONTROL, "fsbench/toy_resnet", "--input-size", "16")
TASK = (*NET, "-t", "toy_scan:5w1s/affine")


@pytest.fixture(autouse=True)
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of two episodes: seconds, not minutes."""
    monkeypatch.setattr(finetune_affine, "BLOCKS", (2,))


def results(folder: Path) -> dict[str, Result]:
    return {str(result.column): result for result in read(folder)}


def test_columns_from_the_run_to_the_board(tmp_path: Path, cli: CommandLine) -> None:
    out, board = str(tmp_path / "results"), str(tmp_path / "board")
    tasks = (*NET, "-t", "toy_scan", "--shots", "1", "--heads", "linear,affine", "--episodes", "2")
    said = cli("episodic", *tasks, "-o", out)
    columns = ["toy_scan:5w1s/affine@ibm 16px", "toy_scan:5w1s/linear@ibm 16px"]
    assert "results: 16px" in said.out.splitlines()[0]
    labels = [line.split()[0] for line in said.out.splitlines() if line.startswith("toy_scan")]
    assert labels[:2] == [column.removesuffix(" 16px") for column in columns]
    estimate, work = said.err.index("affine tuning of 2 5w1s episodes: about"), "affine: 2/2, "
    assert estimate < said.err.index(work)
    stored = results(Path(out))
    assert sorted(stored) == columns
    affine = stored[columns[0]]
    assert affine.backbone.n_affine == 720
    assert affine.manifest_hash == stored[columns[1]].manifest_hash
    fakes.declare(Path(out), name="mine", pretraining_data=())
    cli("submit", out, "--board", board)
    shown = cli("leaderboard", "show", "--board", board, "--format", "md").out.replace("\\", "")
    for head in ("affine", "linear"):
        assert f"| toy_scan:5w1s/{head}@ibm 16px |" in shown, "a table per head"


def test_batch_statistics_are_never_silent(tmp_path: Path, cli: CommandLine) -> None:
    task = (*TASK, "--episodes", "2", "-o", str(tmp_path))
    cli("episodic", *task)
    shown = cli("episodic", *task, "--bn-mode", "train").out
    names = ["toy_scan:5w1s/affine@ibm 16px", "toy_scan:5w1s/affine@ibm 16px bn-train"]
    stored = results(tmp_path)
    assert sorted(stored) == names
    assert len(set(digests(tmp_path).values())) == 2
    assert names[1] in shown


def test_it_never_runs_unasked_and_needs_no_features(tmp_path: Path, cli: CommandLine) -> None:
    task = (*NET, "-t", "toy_scan", "--shots", "1", "--limit", "2", "--cache", tmp_path / "cache")
    cli("episodic", *task, "--heads", "affine", "-o", tmp_path / "a")
    assert not (tmp_path / "cache" / "features").exists()
    cli("benchmark", *task, "-o", tmp_path / "b")
    assert not any("affine" in column for column in results(tmp_path / "b"))


def test_more_than_an_hour_wants_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    monkeypatch.setattr(finetune_affine, "time_step", lambda *args: 30.0)
    said = cli("episodic", *TASK, "--episodes", "2", "-o", tmp_path / "out", code=2).err
    assert "affine tuning of 2 5w1s episodes: about 105 min" in said
    assert "--yes" in said
    assert not (tmp_path / "out").exists()
    cli("episodic", *TASK, "--episodes", "2", "-o", tmp_path / "out", "--yes")
    again = cli("episodic", *TASK, "--episodes", "2", "-o", tmp_path / "out").err
    assert "about" not in again, "nothing is left to do"
