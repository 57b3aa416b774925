"""fsbench leaderboard check: every defect of a board folder is named; exit 5 with the list."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import cli, fakes
from support.badges import make_badge
from support.fakes import DECLARATION
from support.forged import edit, forge, rewrite

from fsbench.api.submit import submit
from fsbench.core.records import EpisodeRecords, Records
from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId
from fsbench.results.entry import Loaded, read_entry, write_entry
from leaderboard import badges
from leaderboard.badges import FlipCount
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board

STUDIES = Path(__file__).resolve().parents[2] / "leaderboard" / "studies"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    for name in "ab":
        fakes.write(root / name, name=name)
        submit(root / name, root / "board", DECLARATION.model_copy(update={"name": name}))
    return root / "board"


@pytest.fixture
def board(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "board"))


def badge(board: Path, name: str = "a", **changes: object) -> Path:
    """A badge that verify could have written, apart from the changes."""
    made = make_badge(board, name)
    return badges.write_badge(board / name, made.model_copy(update=changes))


def change_check(board: Path, **changes: object) -> Path:
    (check,) = make_badge(board, "a").checks
    return badge(board, checks=(check.model_copy(update=changes),))


def change_flips(board: Path, **changes: object) -> Path:
    (check,) = make_badge(board, "a").checks
    return change_check(board, scored=check.scored.model_copy(update=changes))


def call(board: Path) -> int:
    return cli.call("leaderboard", "check", "--board", str(board))


def test_a_sound_board_is_ok_with_what_git_needs(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    badge(board)
    badge(board, entry_digest="0" * 64)  # of an earlier state of the entry
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


def line(**changes: object) -> Callable[[Path], object]:
    """Change a field of the only result of entry a."""
    return lambda b: edit(b / "a", lambda content: content["results"][0].update(changes))


def top(**changes: object) -> Callable[[Path], object]:
    return lambda b: edit(b / "a", lambda content: content.update(changes))


NOON, EAST = "T12:00:00+00:00", "T12:00:00+02:00"
DENSE = FlipCount(outcomes=1, flipped=0, gained=0)
NONE = ColumnId.parse("eurosat:5w1s/linear@ibm 224px")


def add_space(path: Path) -> None:
    path.write_text(path.read_text() + " ")


def edit_badge(path: Path) -> None:
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 7'))


def other_model(board: Path) -> None:
    """Results of a second network, as if it were a seed."""
    other = fakes.facts("other")

    def change(loaded: Loaded) -> tuple[Result, Records]:
        return loaded.result.model_copy(update={"backbone": other}), loaded.records

    cells = [(c.result, c.records) for c in read_entry(board / "a").cells]
    rewrite(board / "a", change)
    changed = [(c.result, c.records) for c in read_entry(board / "a").cells]
    file = read_entry(board / "a").file
    facts = {name: getattr(file, name) for name in ("declaration", "submitted", "fsbench")}
    write_entry(board / "a", cells + changed, **facts)


def remove_and_restore(board: Path) -> None:
    shutil.copytree(board / "a", board.parent / "saved")
    Board.open(board).remove("a", "copied from a paper")
    shutil.copytree(board.parent / "saved", board / "a")


def remove_and_rename(board: Path) -> None:
    """The same outcomes come back in another entry."""
    remove_and_restore(board)
    edit(board / "a", lambda content: content["declaration"].update(name="again"))
    (board / "a").rename(board / "again")


DEFECTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "score": ("the file says 99.00 ±", line(score={"mean": 0.99, "ci95": 0.1, "n": 40})),
    "manifest": ("0000, expected ", line(manifest_hash="0" * 64)),
    "column": ("is named 'eurosat", line(column="eurosat:5w1s/linear@ibm 32px n_query=5")),
    "outcomes": ("cannot be read", top(outcomes="0" * 64)),
    "layout": ("not as fsbench writes it", lambda b: add_space(b / "a" / "entry.json")),
    "results folder": ("not a submitted entry", top(declaration=None)),
    "name": ("name the folder after it", lambda b: (b / "a").rename(b / "c")),
    "file": ("expected only its two files", lambda b: (b / "a" / "evil.py").write_text("boom")),
    "older outcomes": (
        "expected only its two files",
        lambda b: (b / "a" / f"outcomes-{'0' * 12}.arrow.zst").write_text("x"),
    ),
    "folder": ("notes: no entry", lambda b: (b / "notes").mkdir()),
    "models": ("networks of several recipes, expected one recipe", other_model),
    "link": ("link or special", link),
    "linked entry": ("a: no entry", linked),
    "entry": ("no valid entry", lambda b: (b / "a" / "entry.json").write_text("{")),
    "board": ("board.json", lambda b: (b / "board.json").write_text("[]")),
    "history": ("history.jsonl, line 1", lambda b: (b / "history.jsonl").write_text("{}\n")),
    "case": ("another letter case", lambda b: shutil.copytree(b / "a", b / "A")),
    "removed": ("as 'a': copied from a paper", remove_and_restore),
    "removed, renamed": ("a maintainer removed these outcomes as 'a'", remove_and_rename),
    "edited badge": ("drawn episodes", lambda b: edit_badge(badge(b))),
    "badge of the future": ("a date that has passed", lambda b: badge(b, date=f"2031-12-31{NOON}")),
    "badge without date": (
        "date: Value error, Invalid isoformat",
        lambda b: badge(b, date="yesterday"),
    ),
    "badge in local time": ("no date such as", lambda b: badge(b, date=f"2026-01-02{EAST}")),
    "badge of no result": ("each once", lambda b: change_check(b, column=NONE)),
    "badge hides a result": ("each once", lambda b: badge(b, not_verified=("x",))),
    "badge of chosen episodes": (
        "drawn episodes (0, 1, 2,",
        lambda b: change_check(b, drawn=tuple(range(30))),
    ),
    "badge of another seed": ("drawn episodes", lambda b: badge(b, seed=7)),
    "badge of fewer episodes": (
        "1 episodes drawn, expected 30 or more",
        lambda b: change_check(b, drawn=(1,)),
    ),
    "badge of many draws": (
        "drawn episodes",
        lambda b: change_check(b, drawn=tuple(range(41))),
    ),
    "badge of 10^9 episodes": ("at most the 40", lambda b: change_check(b, episodes=10**9)),
    "badge of 10^9 outcomes": (
        "0, expected 1000",
        lambda b: change_flips(b, outcomes=10**9),
    ),
    "badge of another mean": ("mean 0.5, expected", lambda b: change_check(b, mean=0.5)),
    "badge of another entry": ("of 'a'", lambda b: badge(b, entry="b")),
    "badge invents a CPU": ("environment", lambda b: change_check(b, differs=("cpu: a -> b",))),
    "badge hides a CPU": ("environment", lambda b: badge(b, environment={"cpu capability": "x"})),
    "badge of odd flips": ("impossible counts", lambda b: change_flips(b, flipped=1)),
    "badge gains more": ("impossible counts", lambda b: change_flips(b, flipped=2, gained=4)),
    "badge without the wrong": ("episodes that differ", lambda b: change_flips(b, flipped=2)),
    "badge of no episode": ("episodes that differ", lambda b: change_check(b, wrong=(99,))),
    "badge with dense queries": ("expected 1 to 0", lambda b: change_check(b, dense=DENSE)),
    "signature of nothing": (
        "expected only its two files",
        lambda b: badge(b).rename(b / "a" / "badges" / "x.json.sig"),
    ),
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
    badge(board)  # of the state before
    for name in "ab":
        forge(board / name, "5w", collapsed)
    assert inspect_board(board).problems == []
    (board / "a" / "entry.json").write_text("{")
    assert [p.where for p in inspect_board(board).problems] == [str(board / "a")]


@pytest.mark.parametrize("study", ["pilot", "regime"])
def test_the_boards_of_the_studies_are_whole(study: str) -> None:
    inspection = inspect_board(STUDIES / study / "entries")
    assert inspection.problems == []
    assert len(inspection.entries) > 30


def test_all_of_them_at_once_exit_5(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("score", "file", "folder"):
        DEFECTS[name][1](board)
    assert call(board) == 5
    shown = capsys.readouterr().err
    for code in ("the file says", "no entry", "only its two files", "problems in 2 entries"):
        assert code in shown
    assert shown.count("fix:") >= 3
    assert call(board / "nowhere") == 2
