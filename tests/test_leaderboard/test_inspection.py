"""Defects of a board: every one is named in words, all at once, with exit code 5."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import cli, fakes
from support.badges import make_badge
from support.fakes import DECLARATION
from support.forged import edit, forge, put

from fsbench.api.submit import submit
from fsbench.core.records import EpisodeRecords
from fsbench.core.tasks import ColumnId
from fsbench.results.entry import read_entry, write_entry
from leaderboard import badges
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board

Edit = Callable[[Path], object]


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


def assert_named(board: Path, text: str) -> None:
    problems = [str(problem) for problem in inspect_board(board).problems]
    assert any(text in problem for problem in problems), problems


TEXT, NO_DATE = "text is too long or has invisible", "submitted: Value error, "
FUTURE, VERSION = "no date in the future", "fsbench: String should match"
VALUES: tuple[tuple[str, object, str], ...] = (
    ("submitted", "yesterday", NO_DATE),
    ("submitted", "2026-01-01T00:00:00", NO_DATE),
    ("submitted", "<script>alert(1)</script>", NO_DATE),
    ("submitted", "9999-12-31T23:59:59-23:59", NO_DATE),
    ("submitted", "2999-01-01T00:00:00+00:00", FUTURE),
    ("results.0.started", "2999-01-01T00:00:00+00:00", FUTURE),
    ("results.0.started", "never", "started: Value error, "),
    ("fsbench", "9.1.0", "fsbench 9.1.0, expected at most"),
    ("environments.0.fsbench", "0.1.1", "fsbench 0.1.1, expected at most"),
    ("fsbench", "best", VERSION),
    ("fsbench", "=1+1", VERSION),
    ("fsbench", "1.0\u202e", VERSION),
    ("environments.0.packages.torch", "newest", "torch: String should"),
    ("environments.0.python", "3.12\u200b.0", "python: String should match"),
    ("declaration.authors", "C.\x1b[2J Carol", "declaration.authors"),
    ("declaration.authors", "", "declaration.authors"),
    ("declaration.statement", "x" * 5000, "at most 2000"),
    ("declaration.name", "dora", "name the folder after it"),
    ("declaration", None, "not a submitted entry"),
    ("rank", 1, "unknown key 'rank'"),
    ("datasets.0.class_names", [*"uvwxy", "z\u2028"], TEXT),
    ("datasets.0.class_counts", [15_000_000] * 6, "more than 20000000 images"),
    ("datasets.0.class_counts", [10**29] * 6, "datasets.0.class_counts"),
    ("datasets.0.class_counts", [31] * 6, ": manifest "),
    ("datasets.0.class_counts", [3] * 6, "3 images in class 0"),
    ("datasets.0.class_ids", [0, 1, 2, 3, 4, 10**19], "datasets.0.class_ids"),
    ("datasets.0.class_ids", [-(10**30), 1, 2, 3, 4, 5], "datasets.0.class_ids"),
    ("specs.0.head.epochs", 10**9, "specs.0.episodic.head.epochs"),
    ("specs.0.n_way", 4, "specs.0"),
    ("environments.0.batch_size", 1, "environments.0.batch_size"),
    ("environments.0.batch_size", 10**9, "environments.0.batch_size"),
    ("environments.0.threads", 10**9, "environments.0.threads"),
    ("environments.0.halvings", 10**6, "environments.0.halvings"),
    ("environments.0.command", "x" * 5000, "environments.0.command"),
    ("models.0.n_parameters", 10**4000, "models.0.n_parameters"),
    ("models.0.steps", 10**4000, "models.0.steps"),
    ("models.0.architecture", "\x1b[2Jgone", "models.0.architecture"),
    ("models.0.architecture", "py:a:b", "a reference that needs no code"),
    ("models.0.ref", "abc\u202e", "models.0.ref"),
    ("models.0.ref", "py:os:system", "a reference that needs no code"),
    ("models.0.ref", "a.pth@py:a:b", "a reference that needs no code"),
    ("models.0.pretraining_data", ["folder-blobs"], "trained on folder-blobs, expected it"),
    ("results.0.seconds", 1.7e308, "results.0.seconds"),
    ("results.0.seconds", 3e10, "results.0.seconds"),
    ("results.0.score.mean", 0.99, "the file says 99.00 ± "),
    ("results.0.score.mean", 99.0, "results.0.score.mean"),
    ("results.0.score.mean", float("nan"), "no valid entry"),
    ("results.0.model", 1, "names model 1 of 1"),
    ("results.0.manifest_hash", "0" * 64, "0000, expected "),
    ("results.0.flags", [], "the flags are none, its data need custom"),
    ("results.0.column", "eurosat:5w1s/linear@ibm 32px n_query=5", "is named 'eurosat"),
    ("results.0.column", "<script>", "is named '<script>'"),
    ("outcomes", "0" * 64, "cannot be read"),
    ("controls", [1], "controls"),
    ("controls", [0], "no network but controls"),
)
"""Path of a value in entry.json, a value there, and what is said of it."""


@pytest.mark.parametrize(("path", "value", "text"), VALUES)
def test_a_forged_value_is_named(path: str, value: object, text: str, board: Path) -> None:
    put(path, value)(board / "a")
    assert_named(board, text)


@pytest.mark.parametrize(
    "text",
    [
        *("good \u202e dab", "C. Caro\u3164l", "C. Carol\ufe0f", "C. Carol\U000e0101", "a\u2800"),
        *("C. Carol ", " C. Carol", "C.\u009b2J Carol", "C. Carol\u200b", "\ue000"),
        "a" + "\u0301" * 40,
    ],
)
def test_a_text_that_hides_something_is_named(text: str, board: Path) -> None:
    put("declaration.authors", text)(board / "a")
    assert_named(board, TEXT)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((n, "a name that no file of a board") for n in ("con", "LPT1.pth", "index.html")),
        *((n, "a name that no file of a board") for n in ("Entry.json", "badges")),
        ("c\u0430rol", "use letters, digits and"),
    ],
)
def test_a_name_that_is_not_safe_is_named(name: str, text: str, board: Path) -> None:
    rename(board, name)
    assert_named(board, text)


def rename(board: Path, name: str) -> None:
    put("declaration.name", name)(board / "a")
    (board / "a").rename(board / name)


# --- files and outcomes --------------------------------------------------------------------------


def write(path: str, content: str = "x") -> Edit:
    return lambda board: (board / path).write_text(content)


def link_entry(board: Path) -> None:
    """An entry that lies elsewhere: sound by itself, and not what a clone of the board holds."""
    (board / "a").rename(board.parent / "away")
    (board / "a").symlink_to(board.parent / "away")


def put_deep(board: Path) -> None:
    (board / "a" / "d" / "d").mkdir(parents=True)
    (board / "a" / "d" / "d" / "x").touch()


def repeat_key(board: Path) -> None:
    path = board / "a" / "entry.json"
    path.write_text(path.read_text().replace("{", '{\n "submitted": "2026-01-01",', 1))


def replace_outcomes(board: Path) -> None:
    """No Arrow file, under a digest that fits."""
    next((board / "a").glob("outcomes-*")).unlink()
    digest = hashlib.sha256(b"x").hexdigest()
    (board / "a" / f"outcomes-{digest[:12]}.arrow.zst").write_bytes(b"x")
    put("outcomes", digest)(board / "a")


def add_network(board: Path) -> None:
    """Results of a second network, as if it were a seed."""
    entry = read_entry(board / "a")
    results = [(loaded.result, loaded.records) for loaded in entry.loaded]
    other = [(r.model_copy(update={"backbone": fakes.facts("other")}), o) for r, o in results]
    facts = {name: getattr(entry.file, name) for name in ("declaration", "submitted", "fsbench")}
    write_entry(board / "a", results + other, **facts)


def move_images(board: Path) -> None:
    """The images of b by their fingerprint, spread otherwise over the classes."""
    counts = {"class_counts": (20, 40, 30, 30, 30, 30)}
    data, apart = fakes.dataset().model_copy(update=counts), board.parent / "apart"
    fakes.write(board.parent / "results", name="a", data=data)
    submit(board.parent / "results", apart, DECLARATION.model_copy(update={"name": "a"}))
    shutil.rmtree(board / "a")
    shutil.copytree(apart / "a", board / "a")


def remove_and_restore(board: Path) -> None:
    shutil.copytree(board / "a", board.parent / "saved")
    Board.open(board).remove("a", "copied from a paper")
    shutil.copytree(board.parent / "saved", board / "a")


def remove_and_rename(board: Path) -> None:
    """The same outcomes come back in another entry."""
    remove_and_restore(board)
    rename(board, "again")


def records(change: Callable[[EpisodeRecords], EpisodeRecords]) -> Edit:
    """Change the records of a and make every hash fit again."""
    return lambda board: forge(board / "a", "5w", change)


def dense(right: int, total: int = 29) -> Edit:
    """Add dense queries of which so many are right in every class."""

    def change(old: EpisodeRecords) -> EpisodeRecords:
        totals = np.full(old.correct.shape[:2], total)
        return replace(old, dense_correct=np.full_like(totals, right), dense_total=totals)

    return records(change)


FILES = "expected only its two files"
DEFECTS: dict[str, tuple[str, Edit]] = {
    "file": (FILES, write("a/evil.py")),
    "page": (FILES, write("a/index.html", "<script>")),
    "older outcomes": (FILES, write(f"a/outcomes-{'0' * 12}.arrow.zst")),
    "deep file": (FILES, put_deep),
    "folder": ("notes: no entry", lambda b: (b / "notes").mkdir()),
    "hidden file": (".env: no entry", write(".env")),
    "link": ("link or special", lambda b: (b / "a" / "x.json").symlink_to("/etc/passwd")),
    "linked entry": ("a: no entry", link_entry),
    "layout": ("not as fsbench writes it", lambda b: write(
        "a/entry.json", (b / "a/entry.json").read_text() + " ")(b)),
    "repeated key": ("not as fsbench writes it", repeat_key),
    "entry": ("no valid entry", write("a/entry.json", "{")),
    "deep entry": ("no valid entry", write("a/entry.json", "[" * 100_000)),
    "board": ("board.json", write("board.json", "[]")),
    "history": ("history.jsonl, line 1", write("history.jsonl", "{}\n")),
    "case": ("another letter case", lambda b: shutil.copytree(b / "a", b / "A")),
    "lost outcomes": ("cannot be read", lambda b: next((b / "a").glob("outcomes-*")).unlink()),
    "unreadable outcomes": ("cannot be read", replace_outcomes),
    "outcomes of another": ("other content than entry.json states", lambda b: shutil.copy(
        next((b / "b").glob("outcomes-*")), next((b / "a").glob("outcomes-*")))),
    "models": ("networks of several recipes, expected one recipe", add_network),
    "images": ("equal fingerprints with other class counts", move_images),
    "removed": ("as 'a': copied from a paper", remove_and_restore),
    "removed, renamed": ("a maintainer removed these outcomes as 'a'", remove_and_rename),
    "dense right": ("fewer dense queries are right or wrong", dense(0)),
    "dense wrong": ("fewer dense queries are right or wrong", dense(29)),
    "dense totals": ("all images but the support", dense(20, 500)),
    "collapsed": ("not right for exactly one class",
                  records(lambda old: replace(old, collapsed=np.ones_like(old.collapsed)))),
    "never finite": ("no logits are finite, but",
                     records(lambda old: replace(old, finite=np.zeros_like(old.finite)))),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_every_defect_is_named(name: str, board: Path) -> None:
    text, spoil = DEFECTS[name]
    spoil(board)
    assert_named(board, text)


# --- badges --------------------------------------------------------------------------------------


def add_badge(board: Path, **changes: object) -> Path:
    """Add a badge of a that verify could have written, apart from the changes."""
    return badges.write_badge(board / "a", make_badge(board, "a").model_copy(update=changes))


def edit_badge(board: Path) -> None:
    path = add_badge(board)
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 7'))


OTHER = ColumnId.parse("eurosat:5w1s/linear@ibm 224px")
BADGES: tuple[tuple[str, dict[str, object], str], ...] = (
    ("badge", {"date": "2031-12-31T12:00:00+00:00"}, "a date that has passed"),
    ("badge", {"date": "yesterday"}, "date: Value error, Invalid isoformat"),
    ("badge", {"date": "2026-01-02T12:00:00+02:00"}, "no date such as"),
    ("badge", {"not_verified": ("x",)}, "each once"),
    ("badge", {"seed": 7}, "drawn episodes"),
    ("badge", {"entry": "b"}, "a badge of 'b', expected of 'a'"),
    ("check", {"column": OTHER}, "each once"),
    ("check", {"drawn": tuple(range(30))}, "drawn episodes (0, 1, 2,"),
    ("check", {"drawn": (1,)}, "1 episodes drawn, expected 30 or more"),
    ("check", {"drawn": tuple(range(41))}, "drawn episodes"),
    ("check", {"episodes": 10**9}, "at most the 40"),
    ("flips", {"flipped": 1}, "impossible counts"),
    ("flips", {"flipped": 2, "gained": 4}, "impossible counts"),
)
"""Part of a badge, other values there, and what is said of them."""


@pytest.mark.parametrize(("part", "changes", "text"), BADGES)
def test_a_forged_badge_is_named(
    part: str, changes: dict[str, object], text: str, board: Path
) -> None:
    (check,) = make_badge(board, "a").checks
    if part == "flips":
        changes = {"scored": check.scored.model_copy(update=changes)}
    if part != "badge":
        changes = {"checks": (check.model_copy(update=changes),)}
    add_badge(board, **changes)
    assert_named(board, text)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (edit_badge, "drawn episodes"),
        (lambda b: add_badge(b).rename(b / "a" / "badges" / "x.json.sig"), FILES),
        (lambda b: add_badge(b).write_text("{}"), "is not a valid Badge"),
    ],
)
def test_a_spoiled_file_of_a_badge_is_named(spoil: Edit, text: str, board: Path) -> None:
    spoil(board)
    assert_named(board, text)


# --- what is sound -------------------------------------------------------------------------------


def call(board: Path) -> int:
    return cli.call("leaderboard", "check", "--board", str(board))


def test_a_sound_board_is_ok_with_what_git_needs(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_badge(board)
    add_badge(board, entry_digest="0" * 64)  # of an earlier state of the entry
    (board / ".git").mkdir()
    (board / ".gitignore").write_text(".lock")
    (board / "README.md").write_text("a board")
    assert call(board) == 0
    assert capsys.readouterr().out == "ok: 2 entries, 2 results, 80 episodes, 2 badges\n"


def collapse(records: EpisodeRecords) -> EpisodeRecords:
    """Send every query to the first class."""
    correct = np.zeros_like(records.correct)
    correct[:, 0] = True
    return replace(records, correct=correct, collapsed=np.ones_like(records.collapsed))


def test_what_is_no_defect(board: Path) -> None:
    """Collapsed episodes are alike for any weights; a broken result is told of once."""
    add_badge(board)  # of the state before
    for name in "ab":
        forge(board / name, "5w", collapse)
    assert inspect_board(board).problems == []
    (board / "a" / "entry.json").write_text("{")
    assert [p.where for p in inspect_board(board).problems] == [str(board / "a")]


def test_names_that_a_spreadsheet_would_run_are_escaped(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("=1+1", "+1", "@sum", "=cmd@x"):
        shutil.copytree(board / "a", board / name)
        edit(board / name, lambda content, name=name: content["declaration"].update(name=name))
    assert call(board) == 0
    cli.call("report", "--board", str(board), "--format", "csv")
    cli.call("leaderboard", "methods", "--board", str(board), "--format", "csv")
    fields = [field for line in capsys.readouterr().out.splitlines() for field in line.split(",")]
    assert {"'=1+1", "'+1", "'@sum", "'=cmd@x"} <= {*fields}
    assert not [field for field in fields if field.startswith(("=", "+", "@"))]


def test_all_of_them_at_once_exit_5(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put("results.0.score.mean", 0.99)(board / "a")
    for name in ("file", "folder"):
        DEFECTS[name][1](board)
    assert call(board) == 5
    shown = capsys.readouterr().err
    for text in ("the file says", "no entry", "only its two files", "problems in 2 entries"):
        assert text in shown
    assert shown.count("fix:") >= 3
    assert call(board / "nowhere") == 2
