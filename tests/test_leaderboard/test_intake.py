"""fsbench submit and leaderboard show, through the command line."""

import json
import re
from pathlib import Path

import pytest
from support import fakes
from support.cli import CommandLine
from support.fakes import DECLARATION

from fsbench.api.submit import submit
from fsbench.core.errors import UnknownName
from leaderboard.store import Board

GIVEN = ("--declaration", "declaration.yaml", "--name", "mine")


@pytest.fixture(autouse=True)
def _declaration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a declaration."""
    monkeypatch.chdir(tmp_path)
    fakes.declare(tmp_path, pretraining_data=("tinyimagenet", "places"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    fakes.write(tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def board(tmp_path: Path) -> Path:
    return tmp_path / "board"


def test_submit_then_show(results: Path, board: Path, cli: CommandLine) -> None:
    command = ("submit", results, "--board", board, *GIVEN)
    assert "ok, not written" in cli(*command, "--dry-run").out
    assert not board.exists()
    assert "added" in cli(*command).out
    entry = json.loads((board / "mine" / "entry.json").read_text())["declaration"]
    assert (entry["pretraining_data"], entry["targets_seen"]) == (["tinyimagenet", "places"], [])
    show = ("leaderboard", "show", "--board", board)
    shown = cli(*show)
    assert re.search(r"^\s*1\s+(◦ )?mine ", shown.out, re.MULTILINE)
    assert "p adjusted for all pairs" in shown.err
    assert cli(*show, "--format", "md").out.startswith("### board: linear ")
    assert cli.json(*show)[0]["entries"][0]["name"] == "mine"


def test_several_models_become_several_entries(
    results: Path, board: Path, cli: CommandLine
) -> None:
    fakes.write(results, 0.8, name="b")
    cli("submit", results, "--board", board, *GIVEN)
    assert set(Board.open(board).names()) == {"mine-a", "mine-b"}
    next(results.glob("a/*/entry.json")).write_text("damaged, which is nothing to b")
    cli("submit", results, "--board", board, *GIVEN, "-m", "b")
    assert (board / "mine").is_dir()
    with pytest.raises(UnknownName, match="unknown model 'bb'\n  fix: did you mean 'b'"):
        submit(results, board, DECLARATION, models=["bb"])


def test_models_of_one_name_are_told_apart_by_weights(results: Path, board: Path) -> None:
    fakes.write(results, backbone=fakes.facts(weights_hash="0" * 64))
    names = {entry.name for entry in submit(results, board, DECLARATION)}
    assert names == {"entry-a-000000", f"entry-a-{fakes.facts().weights_hash[:6]}"}
