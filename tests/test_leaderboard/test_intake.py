"""fsbench submit and leaderboard show, through the command line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import fakes
from support.cli import call
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


def test_submit_then_show(results: Path, board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("submit", results, "--board", board, *GIVEN, "--dry-run") == 0
    assert "ok, not written" in capsys.readouterr().out
    assert not board.exists()
    assert call("submit", results, "--board", board, *GIVEN) == 0
    assert "added" in capsys.readouterr().out
    entry = json.loads((board / "mine" / "entry.json").read_text())["declaration"]
    assert entry["pretraining_data"] == ["tinyimagenet", "places"]
    assert entry["targets_seen"] == []
    assert call("leaderboard", "show", "--board", board) == 0
    shown = capsys.readouterr()
    assert re.search(r"^\s*1\s+(◦ )?mine ", shown.out, re.MULTILINE)
    assert "p adjusted for all pairs" in shown.err
    assert call("leaderboard", "show", "--board", board, "--format", "md") == 0
    assert capsys.readouterr().out.startswith("### board: linear ")
    assert call("leaderboard", "show", "--board", board, "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["entries"][0]["name"] == "mine"


def test_several_models_become_several_entries(results: Path, board: Path) -> None:
    fakes.write(results, 0.8, name="b")
    assert call("submit", results, "--board", board, *GIVEN) == 0
    assert set(Board.open(board).names()) == {"mine-a", "mine-b"}
    assert call("submit", results, "--board", board, *GIVEN, "-m", "b") == 0
    assert (board / "mine").is_dir()


def test_models_of_one_name_are_told_apart_by_weights(results: Path, board: Path) -> None:
    fakes.write(results, backbone=fakes.facts(weights_hash="0" * 64))
    names = {entry.name for entry in submit(results, board, DECLARATION)}
    assert names == {"entry-a-000000", f"entry-a-{fakes.facts().weights_hash[:6]}"}


def test_an_unknown_model_has_its_nearest_name(results: Path, board: Path) -> None:
    fakes.write(results, name="pilot-seal-s0")
    with pytest.raises(UnknownName, match="did you mean 'pilot-seal-s0'"):
        submit(results, board, DECLARATION, models=["pilot-seal-s1"])


def test_exit_codes_and_messages(
    results: Path, board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.zip").write_text("x")
    for code, arguments, text in (
        (2, ("submit", results, "--board", board), "the declaration lacks name, authors"),
        (2, ("submit", tmp_path / "none", "--board", board, *GIVEN), "does not exist"),
        (2, ("submit", tmp_path / "empty", "--board", board, *GIVEN), "holds no results"),
        (2, ("submit", tmp_path / "a.zip", "--board", board, *GIVEN), "a.zip is no folder"),
        (2, ("submit", results, "--board", board, "-m", "zzz", *GIVEN), "unknown model"),
        (2, ("leaderboard", "show", "--board", board), "no board at"),
        (2, ("leaderboard", "show", "--board", results, "--format", "html"), "html"),
    ):
        assert call(*arguments) == code, arguments
        shown = capsys.readouterr().err
        assert text in shown
        assert "Traceback" not in shown
    assert not board.exists()


HEAVY = {
    "rich.console",
    *("datasets", "matplotlib", "pandas", "scipy.stats", "sklearn"),
    *("timm", "torch"),
}


def test_showing_a_board_imports_nothing_heavy(results: Path, board: Path) -> None:
    submit(results, board, DECLARATION)
    script = (
        "import sys; from fsbench.cli.main import run\ntry: run()\nfinally: print(*sys.modules)"
    )
    command = [sys.executable, "-c", script, "leaderboard", "show", "--board", str(board)]
    modules = subprocess.check_output(command, text=True).splitlines()[-1].split()
    assert not HEAVY & {*modules}
    assert "pyarrow" in modules
