"""fsbench leaderboard check: every defect of a board folder is named; exit 5 with the list."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import fakes
from support.badges import make_badge
from support.fakes import DECLARATION
from support.forged import flipped, forge

from fsbench.cli.main import run
from fsbench.core.records import EpisodeRecords
from leaderboard import badges, published
from leaderboard.badges import FlipCount
from leaderboard.rules.board import inspect_board
from leaderboard.rules.submission import submit_results


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    for name in "ab":
        fakes.write(root / name, name=name)
        submit_results(root / name, root / "board", DECLARATION.model_copy(update={"name": name}))
    return root / "board"


@pytest.fixture
def board(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "board"))


def badge(board: Path, name: str = "a", **changes: object) -> Path:
    """A badge that verify could have written, apart from the changes."""
    made = make_badge(board, name)
    return badges.write_badge(board / name, made.model_copy(update=changes))


def change_check(board: Path, **changes: object) -> Path:
    (check,) = make_badge(board, "a").cells
    return badge(board, cells=(check.model_copy(update=changes),))


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def call(board: Path) -> int:
    with pytest.raises(SystemExit) as stop:
        run(["leaderboard", "check", "--board", str(board)])
    return int(stop.value.code or 0)


def test_a_sound_board_is_ok_with_what_git_needs(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    badge(board)
    old_badge(board, drawn=(3, 5))  # schema 1 drew by a name and a seed
    (board / ".git").mkdir()
    (board / ".gitignore").write_text(".lock")
    (board / "README.md").write_text("a board")
    assert call(board) == 0
    assert capsys.readouterr().out == "ok: 2 entries, 2 results, 80 episodes, 2 badges\n"


def link(board: Path) -> None:
    (board / "a" / "x.json").symlink_to("/etc/passwd")


def linked(board: Path) -> None:
    """An entry that lies elsewhere: sound by itself, and not what a clone of the board holds."""
    (board / "a").rename(board.parent / "away")
    (board / "a").symlink_to(board.parent / "away")


def result(board: Path) -> Path:
    return next((board / "a").rglob("5w*.json"))


def copy_of_b(board: Path) -> None:
    """The records of b under the weights of a, with every hash made to fit."""
    theirs = next((board / "b").rglob("5w*.parquet"))

    def take(_: object) -> object:
        from fsbench.results.verification import load_result

        return load_result(theirs.with_suffix(".json")).records

    forge(board / "a", "5w", take)  # type: ignore[arg-type]


NOON = "T12:00:00+00:00"
DENSE = FlipCount(outcomes=1, flipped=0, gained=0, allowed=0)


def rename(path: Path) -> None:
    path.rename(path.with_name(f"1-{path.name.rpartition('-')[2]}"))


def old_badge(board: Path, **changes: object) -> Path:
    (check,) = make_badge(board, "a").cells
    return badge(board, schema_version=1, cells=(check.model_copy(update=changes),))


DEFECTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "score": ("[score]", lambda b: edit(result(b), score={"mean": 0.99, "ci95": 0.1, "n": 40})),
    "manifest": ("[manifest]", lambda b: edit(result(b), manifest_hash="0" * 64)),
    "chain": ("[chain]", lambda b: edit(result(b), manifest_hash="0" * 64)),
    "name": ("name the folder after it", lambda b: (b / "a").rename(b / "c")),
    "file": ("[stray]", lambda b: (b / "a" / "evil.py").write_text("boom")),
    "folder": ("[stray]", lambda b: (b / "notes").mkdir()),
    "model": ("[backbone]", lambda b: edit(next((b / "a").rglob("model.json")), n_parameters=1)),
    "models": ("2 models", lambda b: fakes.write(b / "a", name="other")),
    "link": ("link or special", link),
    "linked entry": ("[stray]", linked),
    "unreadable": ("[unreadable]", lambda b: result(b).write_text("{")),
    "entry": ("[entry]", lambda b: (b / "a" / "entry.json").write_text("{")),
    "board": ("[board]", lambda b: (b / "board.json").write_text("[]")),
    "case": ("another letter case", lambda b: shutil.copytree(b / "a", b / "A")),
    "copied": ("[copied]", copy_of_b),
    "killed": ("[unfinished]", lambda b: (b / ".staging-x").mkdir()),
    "edited badge": ("was changed", lambda b: edit(badge(b), seed=7)),
    "badge of the future": ("a date that has passed", lambda b: badge(b, date=f"2031-12-31{NOON}")),
    "badge without date": ("a date as ISO 8601", lambda b: badge(b, date="yesterday")),
    "badge in local time": ("offset of UTC", lambda b: badge(b, date="2026-01-02T03:04:05+02:00")),
    "renamed badge": ("file 1-", lambda b: rename(badge(b))),
    "badge of no result": ("each once", lambda b: change_check(b, cell="eurosat:5w1s")),
    "badge hides a result": ("each once", lambda b: badge(b, not_verified=("x",))),
    "badge of chosen episodes": (
        "as the chain says",
        lambda b: change_check(b, drawn=tuple(range(8))),
    ),
    "badge of another seed": ("as the chain says", lambda b: badge(b, seed=7)),
    "badge of fewer episodes": ("as the chain says", lambda b: change_check(b, drawn=(1,))),
    "badge of many draws": ("at most 40", lambda b: change_check(b, drawn=tuple(range(41)))),
    "badge of 10^9 episodes": ("at most the 40", lambda b: change_check(b, episodes=10**9)),
    "badge of 10^9 outcomes": ("1000 to 1000", lambda b: change_check(b, outcomes=10**9)),
    "badge allows flips": ("75 flips allowed", lambda b: change_check(b, allowed=75)),
    "badge invents a CPU": ("environment", lambda b: change_check(b, differs=("cpu: a -> b",))),
    "badge hides a CPU": ("environment", lambda b: badge(b, environment={"cpu capability": "x"})),
    "badge of odd flips": ("possible counts", lambda b: change_check(b, flipped=1, wrong=(1,))),
    "badge gains more": ("possible counts", lambda b: change_check(b, flipped=2, gained=4)),
    "badge without the wrong": ("episodes that differ", lambda b: change_check(b, flipped=2)),
    "badge of no episode": ("episodes that differ", lambda b: change_check(b, wrong=(99,))),
    "badge with dense queries": ("1 to 0", lambda b: change_check(b, dense=DENSE)),
    "old badge of chosen episodes": ("as the chain says", lambda b: old_badge(b, drawn=(99,))),
    "signature of nothing": (
        "[stray]",
        lambda b: badge(b).rename(b / "a" / "badges" / "x.json.sig"),
    ),
    "old badge": ("[badge]", lambda b: (badge(b), forge(b / "a", "5w", flipped(1)))),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_every_defect_is_named(name: str, board: Path) -> None:
    text, spoil = DEFECTS[name]
    spoil(board)
    problems = [str(problem) for problem in inspect_board(board).problems]
    assert any(text in problem for problem in problems), problems


def collapsed(records: EpisodeRecords) -> EpisodeRecords:
    """Every query went to the first class."""
    correct = np.zeros_like(records.correct)
    correct[:, 0] = True
    return replace(records, correct=correct, collapsed=np.ones_like(records.collapsed))


def test_what_is_no_defect(board: Path) -> None:
    """Collapsed episodes are alike for any weights; a broken result is told of once."""
    for name in "ab":
        forge(board / name, "5w", collapsed)
    assert inspect_board(board).problems == []
    result(board).write_text("{")
    problems = inspect_board(board).problems
    assert [p.where for p in problems if p.code == "unreadable"] == [str(result(board))]
    assert not [p for p in problems if p.where.endswith(".parquet")]


def test_rows_of_papers_lie_beside_the_own_board_alone(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = published.load_published()[0]
    path = board / f"{row.name}.json"
    path.write_text(row.model_dump_json())
    assert [problem.code for problem in inspect_board(board).problems] == ["stray"]
    monkeypatch.setattr(published, "ENTRIES", board.resolve())
    assert inspect_board(board).problems == []
    path.rename(board / "other.json")
    assert [problem.code for problem in inspect_board(board).problems] == ["published"]


def test_the_board_of_a_clone_is_whole_for_an_installed_package(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package has the published rows alone; the clone has measured entries beside them."""
    packaged = tmp_path / "packaged"
    shutil.copytree(published.ENTRIES, packaged, ignore=shutil.ignore_patterns("pilot-*"))
    shutil.copytree(packaged, board, dirs_exist_ok=True)
    monkeypatch.setattr(published, "ENTRIES", packaged)
    assert inspect_board(board).problems == []


def test_the_own_board_is_whole() -> None:
    assert inspect_board(published.ENTRIES).problems == []


def test_all_of_them_at_once_exit_5(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("score", "file", "folder", "killed"):
        DEFECTS[name][1](board)
    assert call(board) == 5
    shown = capsys.readouterr().err
    for code in ("[score]", "[stray]", "[unfinished]", "problems in 2 entries"):
        assert code in shown
    assert shown.count("fix:") >= 4
    assert call(board / "nowhere") == 2
