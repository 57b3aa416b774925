"""fsbench submit and leaderboard show, through the command line."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support.cli import call
from support.fakes import DECLARATION
from support.forged import edit

from fsbench.api.submit import submit
from fsbench.core.errors import UnknownName
from leaderboard.store import Board

GIVEN = ("--declaration", "declaration.yaml", "--name", "mine")


@pytest.fixture(autouse=True)
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a declaration."""
    monkeypatch.chdir(tmp_path)
    fakes.declare(tmp_path, pretraining_data=("tinyimagenet", "places"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    fakes.write(tmp_path / "results")
    return tmp_path / "results"


def test_submit_then_show(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "board"
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


@pytest.mark.parametrize("top", ["results", "."])
def test_an_archive_is_as_good_as_a_folder(top: str, results: Path, tmp_path: Path) -> None:
    (results / "declaration.yaml").write_text(DECLARATION.model_dump_json())
    root = tmp_path if top == "results" else results
    path = shutil.make_archive(str(tmp_path / "packed"), "zip", root, top)
    assert call("submit", path, "--board", tmp_path / "board") == 0
    assert (tmp_path / "board" / "entry" / "entry.json").is_file()


def test_a_dry_run_writes_nothing(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("submit", results, "--board", tmp_path / "board", *GIVEN, "--dry-run") == 0
    assert "ok, not written" in capsys.readouterr().out
    assert not (tmp_path / "board").exists()


def test_several_models_become_several_entries(results: Path, tmp_path: Path) -> None:
    fakes.write(results, 0.8, name="b")
    board = tmp_path / "board"
    assert call("submit", results, "--board", board, *GIVEN) == 0
    assert set(Board.open(board).names()) == {"mine-a", "mine-b"}
    assert call("submit", results, "--board", board, *GIVEN, "-m", "b") == 0
    assert (board / "mine").is_dir()


def test_models_of_one_name_are_told_apart_by_weights(results: Path, tmp_path: Path) -> None:
    fakes.write(results, backbone=fakes.facts(weights_hash="0" * 64))
    added = submit(results, tmp_path / "board", DECLARATION)
    assert sorted(result.name for result in added) == [
        "entry-a-000000",
        f"entry-a-{fakes.facts().weights_hash[:6]}",
    ]


def test_an_unknown_model_has_its_nearest_name(results: Path, tmp_path: Path) -> None:
    fakes.write(results, name="pilot-seal-s0")
    with pytest.raises(UnknownName, match="did you mean 'pilot-seal-s0'"):
        submit(results, tmp_path / "board", DECLARATION, models=["pilot-seal-s1"])


def test_exit_codes_and_messages(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "board"
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.zip").write_text("no archive")
    for code, arguments, text in (
        (2, ("submit", results, "--board", board), "the declaration lacks name, authors"),
        (2, ("submit", tmp_path / "none", "--board", board, *GIVEN), "does not exist"),
        (2, ("submit", tmp_path / "empty", "--board", board, *GIVEN), "holds no results"),
        (2, ("submit", results, "--board", board, "-m", "zzz", *GIVEN), "unknown model"),
        (5, ("submit", tmp_path / "bad.zip", "--board", board, *GIVEN), "no readable archive"),
        (2, ("leaderboard", "show", "--board", board), "no board at"),
        (2, ("leaderboard", "show", "--board", results, "--format", "html"), "html"),
    ):  # fmt: skip
        assert call(*arguments) == code, arguments
        shown = capsys.readouterr().err
        assert text in shown
        assert "Traceback" not in shown
    assert not board.exists()


def test_problems_exit_5_with_every_one_listed(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(content: dict[str, Any]) -> None:
        line = content["results"][0]
        line["score"]["mean"], line["manifest_hash"] = 0.99, "0" * 64

    home = next(results.rglob("entry.json")).parent
    edit(home, change)
    assert call("submit", results, "--board", tmp_path / "board", *GIVEN) == 5
    shown = capsys.readouterr().err
    assert "2 problems, nothing was written" in shown
    assert f"{home}:folder-blobs:5w1s/linear@ibm 32px" in shown
    assert "the file says 99.00" in shown
    assert shown.count("fix:") == 2
    assert not (tmp_path / "board").exists()


HEAVY = {
    *("datasets", "matplotlib", "pandas", "pyarrow", "rich.console", "scipy.stats", "sklearn"),
    *("timm", "torch"),
}


def test_showing_a_board_imports_nothing_heavy(results: Path, tmp_path: Path) -> None:
    submit(results, tmp_path / "board", DECLARATION)
    arguments = ("leaderboard", "show", "--board", "board")
    script = (
        "import sys; from fsbench.cli.main import run\ntry: run()\nfinally: print(*sys.modules)"
    )
    command = [sys.executable, "-c", script, *arguments]
    output = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert HEAVY & {*output.splitlines()[-1].split()} == {"pyarrow"}
