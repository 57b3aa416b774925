"""Defects of a board: every one is named in words, all at once, with exit code 5."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import fakes
from support.badges import add_badge
from support.cli import CommandLine
from support.fakes import add_entry
from support.forged import forge, put, set_value

from fsbench.core.records import EpisodeRecords
from fsbench.results.entry import read_entry, write_entry
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board

Edit = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    board = tmp_path_factory.mktemp("made") / "board"
    for name in "ab":
        add_entry(board, name)
    return board


@pytest.fixture
def board(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "board"))


TEXT, NO_DATE = "text is too long, or has outer spaces", "submitted: Value error, "
FUTURE, VERSION = "no date in the future", "fsbench: String should match"
VALUES = (
    ("submitted", "yesterday", NO_DATE),
    ("submitted", "9999-12-31T23:59:59-23:59", NO_DATE),
    ("submitted", "2999-01-01T00:00:00+00:00", FUTURE),
    ("results.0.started", "2999-01-01T00:00:00+00:00", FUTURE),
    ("results.0.started", "never", "started: Value error, "),
    ("fsbench", "9.1.0", "fsbench 9.1.0, expected at most"),
    ("environments.0.fsbench", "0.1.1", "fsbench 0.1.1, expected at most"),
    ("fsbench", "best", VERSION),
    ("environments.0.packages.torch", "newest", "torch: String should"),
    ("environments.0.python", "3.12\u200b.0", "python: String should match"),
    ("declaration.authors", "C.\x1b[2J Carol", "declaration.authors"),
    ("declaration.authors", "", "declaration.authors"),
    ("declaration.statement", "x" * 5000, "at most 2000"),
    ("declaration.name", "dora", "name the folder after it"),
    ("declaration", None, "not a submitted entry"),
    ("datasets.0.class_names", [*"uvwxy", "z\u2028"], TEXT),
    ("datasets.0.class_counts", [15_000_000] * 6, "more than 20000000 images"),
    ("datasets.0.class_counts", [10**29] * 6, "datasets.0.class_counts"),
    ("datasets.0.class_counts", [31] * 6, ": manifest "),
    ("datasets.0.class_counts", [3] * 6, "3 images in class 0"),
    ("datasets.0.class_ids", [0, 1, 2, 3, 4, 10**19], "datasets.0.class_ids"),
    ("specs.0.head.epochs", 10**9, "specs.0.episodic.head.epochs"),
    ("specs.0.n_way", 4, "specs.0"),
    ("environments.0.batch_size", 1, "environments.0.batch_size"),
    ("environments.0.command", "x" * 5000, "environments.0.command"),
    ("models.0.n_parameters", 10**4000, "models.0.n_parameters"),
    ("models.0.architecture", "\x1b[2Jgone", "models.0.architecture"),
    ("models.0.architecture", "py:a:b", "py:a:b, expected the sha-256 of its code"),
    ("models.0.ref", "abc\u202e", "models.0.ref"),
    ("models.0.ref", "py:os:system", "py:os:system, expected the sha-256 of its code"),
    ("models.0.ref", "a.pth@py:a:b", "a.pth@py:a:b, expected the sha-256 of its code"),
    ("models.0.code", "a" * 64, "expected no sha-256 of code"),
    ("models.0.pretraining_data", ["folder-blobs"], "trained on folder-blobs, expected it"),
    ("results.0.seconds", 1.7e308, "results.0.seconds"),
    ("results.0.score.mean", 0.99, "the file says 99.00 ± "),
    ("manifests.0", "0" * 64, "0000, expected "),
    ("controls", [0], "no network but controls"),
)
"""Path of a value in entry.json, a value there, and what is said of it."""


HIDING = (
    *("good \u202e dab", "C. Caro\u3164l", "C. Carol\ufe0f", "C. Carol\U000e0101", "a\u2800"),
    *("C. Carol ", " C. Carol", "C.\u009b2J Carol", "C. Carol\u200b", "\ue000"),
    "a" + "\u0301" * 40,
)
"""Texts with characters that nobody sees, or that draw over others."""
UNSAFE = {
    **dict.fromkeys(("con", "LPT1.pth", "Entry.json", "badges"), "a name that no file of a board"),
    **dict.fromkeys(("c\u0430rol", "a" * 150), "use letters, digits and"),
    "-x": "name: String should match",
}
"""Name of an entry -> what is said of it."""


def rename(board: Path, name: str) -> None:
    put("declaration.name", name)(board / "a")
    (board / "a").rename(board / name)


def write(path: str, content: str = "x") -> Edit:
    def make(board: Path) -> None:
        (board / path).parent.mkdir(parents=True, exist_ok=True)
        (board / path).write_text(content)

    return make


def begin(text: str) -> Edit:
    """Let entry.json of a begin with a text in place of its brace."""

    def make(board: Path) -> None:
        path = board / "a" / "entry.json"
        path.write_text(path.read_text().replace("{", text, 1))

    return make


def link_entry(board: Path) -> None:
    """An entry that lies elsewhere: sound by itself, and not what a clone of the board holds."""
    (board / "a").rename(board.parent / "away")
    (board / "a").symlink_to(board.parent / "away")


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
    add_entry(board.parent / "apart", "a", data=fakes.dataset().model_copy(update=counts))
    shutil.rmtree(board / "a")
    shutil.copytree(board.parent / "apart" / "a", board / "a")


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


def add_dense(old: EpisodeRecords) -> EpisodeRecords:
    """Add dense queries, more than the classes have."""
    totals = np.full(old.correct.shape[:2], 500)
    return replace(old, dense_correct=np.full_like(totals, 20), dense_total=totals)


FILES = "expected only its two files"
DEFECTS: dict[str, tuple[str, Edit]] = {
    "file": (FILES, write("a/evil.py")),
    "older outcomes": (FILES, write(f"a/outcomes-{'0' * 12}.arrow.zst")),
    "deep file": (FILES, write("a/d/d/x")),
    "folder": ("notes: no entry", lambda b: (b / "notes").mkdir()),
    "hidden file": (".env: no entry", write(".env")),
    "link": ("link or special", lambda b: (b / "a" / "x.json").symlink_to("/etc/passwd")),
    "linked entry": ("a: no entry", link_entry),
    "layout": ("not as fsbench writes it", begin(" {")),
    "repeated key": ("not as fsbench writes it", begin('{\n "submitted": "2026-01-01",')),
    "entry": ("no valid entry", write("a/entry.json", "{")),
    "board": ("board.json", write("board.json", "[]")),
    "history": ("history.jsonl, line 1", write("history.jsonl", "{}\n")),
    "case": ("another letter case", lambda b: shutil.copytree(b / "a", b / "A")),
    "lost outcomes": ("cannot be read", lambda b: next((b / "a").glob("outcomes-*")).unlink()),
    "unreadable outcomes": ("cannot be read", replace_outcomes),
    "models": ("networks of several recipes, expected one recipe", add_network),
    "images": ("equal fingerprints with other class counts", move_images),
    "removed": ("as 'a': copied from a paper", remove_and_restore),
    "removed, renamed": ("a maintainer removed these outcomes as 'a'", remove_and_rename),
    "dense totals": ("all images but the support", records(add_dense)),
    "collapsed": ("not right for exactly one class",
                  records(lambda old: replace(old, collapsed=np.ones_like(old.collapsed)))),
    "never finite": ("no logits are finite, but",
                     records(lambda old: replace(old, finite=np.zeros_like(old.finite)))),
}  # fmt: skip


def edit_badge(path: str, value: object, **changes: object) -> Edit:
    """Add a badge of a that verify could have written, apart from a value."""

    def make(board: Path) -> None:
        file = add_badge(board, "a", **changes)
        content = json.loads(file.read_text())
        set_value(content, path, value)
        file.write_text(json.dumps(content))

    return make


BADGES = (
    ("date", "2031-12-31T12:00:00+00:00", "a date that has passed"),
    ("date", "yesterday", "date: Value error, Invalid isoformat"),
    ("date", "2026-01-02T12:00:00+02:00", "no date such as"),
    ("not_verified", ["x"], "each once"),
    ("seed", 7, "drawn episodes"),
    ("entry", "b", "a badge of 'b', expected of 'a'"),
    ("checks.0.column", "eurosat:5w1s/linear@ibm 224px", "each once"),
    ("checks.0.drawn", [*range(30)], "drawn episodes (0, 1, 2,"),
    ("checks.0.drawn", [1], "1 episodes drawn, expected 30 or more"),
    ("checks.0.drawn", [*range(41)], "drawn episodes"),
    ("checks.0.episodes", 10**9, "at most the 40"),
    ("checks.0.scored.flipped", 1, "impossible counts"),
    ("checks.0.scored.gained", 4, "impossible counts"),
)
"""Path of a value in a badge, a value there, and what is said of it."""
SPOILED: tuple[tuple[str, Edit], ...] = (
    *DEFECTS.values(),
    *((text, lambda b, p=path, v=value: put(p, v)(b / "a")) for path, value, text in VALUES),
    *((TEXT, lambda b, t=text: put("declaration.authors", t)(b / "a")) for text in HIDING),
    *((text, lambda b, n=name: rename(b, n)) for name, text in UNSAFE.items()),
    *((text, edit_badge(path, value)) for path, value, text in BADGES),
    (FILES, lambda b: add_badge(b, "a").rename(b / "a" / "badges" / "x.json.sig")),
    ("is not a valid Badge", lambda b: add_badge(b, "a").write_text("{}")),
)


@pytest.mark.parametrize(("text", "spoil"), SPOILED)
def test_every_defect_is_named(text: str, spoil: Edit, board: Path) -> None:
    spoil(board)
    problems = [str(problem) for problem in inspect_board(board).problems]
    assert any(text in problem for problem in problems), problems


def test_a_sound_board_is_ok_with_what_git_needs(board: Path, cli: CommandLine) -> None:
    add_badge(board, "a")
    edit_badge("entry_digest", "0" * 64, seed=1)(board)  # of an earlier state of the entry
    (board / ".git").mkdir()
    (board / ".gitignore").write_text(".lock")
    (board / "README.md").write_text("a board")
    shown = cli("leaderboard", "check", "--board", board).out
    assert shown == "ok: 2 entries, 2 results, 80 episodes, 2 badges\n"


def collapse(records: EpisodeRecords) -> EpisodeRecords:
    """Send every query to the first class."""
    correct = np.zeros_like(records.correct)
    correct[:, 0] = True
    return replace(records, correct=correct, collapsed=np.ones_like(records.collapsed))


def test_what_is_no_defect(board: Path) -> None:
    """Collapsed episodes are alike for any weights; a broken result is told of once."""
    add_badge(board, "a")  # of the state before
    for name in "ab":
        forge(board / name, "5w", collapse)
    assert inspect_board(board).problems == []
    (board / "a" / "entry.json").write_text("{")
    assert [p.where for p in inspect_board(board).problems] == [str(board / "a")]
