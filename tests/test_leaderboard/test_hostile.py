"""Submissions made to hurt: refused with a reason, in bounded time and memory, nothing written."""

import copy
import json
import zipfile
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
from support.fakes import DECLARATION
from support.forged import edit, rewrite

from fsbench.api.submit import submit
from fsbench.cli.main import printable, run
from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Result
from fsbench.results.entry import Loaded
from leaderboard.intake import archive, submission
from leaderboard.intake.submission import read_declaration, read_submissions

FUZZ = settings(max_examples=60, deadline=None, derandomize=True,
                suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_packers_that_take_memory_are_refused(method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as out:
        out.writestr("x", b"0" * 100)
    with pytest.raises(ValidationFailed, match="not packed by deflate"):
        archive.open_submission(tmp_path / "a.zip").__enter__()


def test_archives_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ARCHIVE", 100)
    (tmp_path / "a.zip").write_bytes(bytes(101))
    with pytest.raises(ValidationFailed, match="larger than 100"):
        archive.open_submission(tmp_path / "a.zip").__enter__()


def test_a_submission_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        fakes.write(tmp_path, name=name)
    assert len(read_submissions(tmp_path, DECLARATION)) == 2
    monkeypatch.setattr(submission, "MAX_OUTCOMES", 1000)
    with pytest.raises(ValidationFailed, match="records of more than 1000"):
        read_submissions(tmp_path, DECLARATION)


BAD_TEXTS = {
    "alias.yaml": ("a: &a [x]\nname: *a\n", "alias"),
    "laughs.yaml": ("a: &a [1]\nb: &b [*a, *a]\n", "alias"),
    "twice.yaml": ("name: x\nname: y\n", "duplicate key"),
    "twice.toml": ('name = "x"\nname = "y"\n', "cannot be read"),
    "twice.json": ('{"name": "x", "name": "y"}', "duplicate key"),
    "tag.yaml": ("name: !!python/object/apply:os.system [id]\n", "cannot be read"),
    "deep.json": ("[" * 200_000, "no readable JSON"),
    "deep.yaml": ("[" * 60_000, "nests deeper"),
    "large.toml": ("#" * 70_000, "larger than"),
    "nan.json": ('{"name": NaN}', "not finite"),
    "half.json": ('{"name": "\\ud800"}', "no readable JSON"),
    "digits.json": ('{"name": ' + "1" * 10_000 + "}", "no readable JSON"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_declarations_that_hurt(name: str, tmp_path: Path) -> None:
    text, match = BAD_TEXTS[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(ValidationFailed, match=match):
        read_declaration(tmp_path / name)


def test_messages_escape_what_they_quote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printable("a\x1b[2Jb\u202ec\ud800\nd") == "a\\x1b[2Jb\\u202ec\\ud800\nd"
    fakes.write(tmp_path / "r")
    home = next((tmp_path / "r").rglob("entry.json")).parent
    edit(home, lambda content: content.update({"\x1b[2J\u202e": 1}))
    (tmp_path / "r" / "declaration.yaml").write_text(DECLARATION.model_dump_json())
    with pytest.raises(SystemExit) as stop:
        run(["submit", str(tmp_path / "r"), "--board", str(tmp_path / "board")])
    assert stop.value.code == 5
    shown = capsys.readouterr().err
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


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a nested record holds anything."""
    yield at
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from places(inner, (*at, key))


def spoiled(record: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    copied = copy.deepcopy(record)
    inner = copied
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return copied


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=20),
    st.sampled_from(["../../x", "/etc/passwd", "<script>", "\u202e", "py:os:system", "a" * 5000]),
    st.just([[[[]]]]), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.lists(st.integers(-5, 5), max_size=7),
)  # fmt: skip


def attempt(folder: Path, number: int, value: Any) -> None:
    """Change one place of entry.json; it is refused with a reason, or changed nothing of note."""
    if not (folder / "r").exists():
        fakes.write(folder / "r")
        fakes.write_probe(folder / "r")
    file = next((folder / "r").rglob("entry.json"))
    text = file.read_text()
    record = json.loads(text)
    spots = list(places(record))
    file.write_text(json.dumps(spoiled(record, spots[number % len(spots)], value)))
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
