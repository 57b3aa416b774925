"""Submissions made to hurt: refused with a reason, in bounded time and memory, nothing written."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import fakes
from support.cli import CommandLine
from support.fakes import DECLARATION
from support.forged import edit, put, rewrite

from fsbench.api.submit import submit
from fsbench.cli.main import printable
from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Result
from fsbench.results.entry import Loaded
from leaderboard import submission
from leaderboard.submission import read_submissions

FUZZ = settings(max_examples=30, derandomize=True,
                suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip


@pytest.mark.parametrize("target", ["/etc/passwd", "/etc", "nowhere", ""])
def test_links_and_pipes_in_folders_are_refused(target: str, tmp_path: Path) -> None:
    """Who reads a pipe waits forever."""
    fakes.write(tmp_path)
    if target:
        (tmp_path / "a" / "x.json").symlink_to(target)
    else:
        os.mkfifo(tmp_path / "entry.json")
    with pytest.raises(ValidationFailed, match="link or special"):
        read_submissions(tmp_path, DECLARATION)


@pytest.mark.parametrize(("limit", "most"), [("MAX_TOTAL", 199), ("MAX_FILES", 1)])
def test_big_folders_are_refused(
    limit: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    for path in (tmp_path / "x", tmp_path / "deep" / "y"):
        path.write_bytes(b"0" * 100)
    monkeypatch.setattr(submission, limit, most + 1)
    submission.check_folder(tmp_path)
    monkeypatch.setattr(submission, limit, most)
    with pytest.raises(ValidationFailed, match="more than"):
        submission.check_folder(tmp_path)


def test_a_submission_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        fakes.write(tmp_path, name=name)
    assert len(read_submissions(tmp_path, DECLARATION)) == 2
    monkeypatch.setattr(submission, "MAX_OUTCOMES", 1000)
    with pytest.raises(ValidationFailed, match="records of more than 1000"):
        read_submissions(tmp_path, DECLARATION)


def test_messages_escape_what_they_quote(tmp_path: Path, cli: CommandLine) -> None:
    assert printable("a\x1b[2Jb\u202ec\ud800\nd") == "a\\x1b[2Jb\\u202ec\\ud800\nd"
    fakes.write(tmp_path / "r")
    home = next((tmp_path / "r").rglob("entry.json")).parent
    edit(home, lambda content: content.update({"\x1b[2J\u202e": 1}))
    fakes.declare(tmp_path / "r")
    shown = cli("submit", tmp_path / "r", "--board", tmp_path / "board", code=5).err
    assert "\\u202e" in shown
    assert "\x1b" not in shown


def test_many_episodes_are_refused_quickly(tmp_path: Path) -> None:
    """Written as if evaluated: the records are sound, there are only far too many."""

    def multiply(loaded: Loaded) -> tuple[Result, EpisodeRecords]:
        rows = np.arange(200_000) % 40
        many = replace(loaded.records.take(rows), index=np.arange(200_000))  # type: ignore[union-attr]
        return loaded.result, many

    fakes.write(tmp_path / "r")
    rewrite(next((tmp_path / "r").rglob("entry.json")).parent, multiply)
    with pytest.raises(ValidationFailed, match="images of classes"):
        submit(tmp_path / "r", tmp_path / "board", DECLARATION)


def list_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys of all values of a nested record."""
    items = enumerate(value) if isinstance(value, list) else dict.items(value)
    for key, inner in items:
        yield (*path, str(key))
        if isinstance(inner, dict | list):
            yield from list_paths(inner, (*path, str(key)))


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=20),
    st.sampled_from(["../../x", "/etc/passwd", "<script>", "\u202e", "py:os:system", "a" * 5000]),
    st.just([[[[]]]]), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.lists(st.integers(-5, 5), max_size=7),
)  # fmt: skip


def attempt(folder: Path, number: int, value: object) -> None:
    """Change a value of entry.json; it is refused with a reason, or changed nothing of note."""
    if not (folder / "r").exists():
        fakes.write(folder / "r")
        fakes.write_probe(folder / "r")
    file = next((folder / "r").rglob("entry.json"))
    text = file.read_text()
    paths = list(list_paths(json.loads(text)))
    put(paths[number % len(paths)], value)(file.parent)
    try:
        with suppress(FsbenchError):
            submit(folder / "r", folder / "board", DECLARATION, dry_run=True)
    finally:
        file.write_text(text)
    assert not (folder / "board").exists()


@FUZZ
@given(st.integers(0, 2**16), ODD)
def test_changed_results_are_refused_or_harmless(tmp_path: Path, number: int, value: Any) -> None:
    attempt(tmp_path, number, value)


@pytest.mark.slow
@settings(FUZZ, max_examples=3000)
@given(st.integers(0, 2**16), ODD)
def test_changed_results_at_length(tmp_path: Path, number: int, value: Any) -> None:
    attempt(tmp_path, number, value)
