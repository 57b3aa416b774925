"""--config files: what they say is what the same words on the command line say, or a refusal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from fuzz.cases import SIZES, Tally, nest
from hypothesis import strategies as st

import fsbench
from fsbench.api.options import EvaluationOptions
from fsbench.cli.main import build_program
from fsbench.core.errors import FsbenchError, UsageError

Given = dict[str, Any]
Reader = Callable[[list[str]], Given]


@pytest.fixture
def read_options(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Return what `fsbench episodic` is given; it does nothing else.

    Raises UsageError, as the command line does.
    """
    calls: list[Given] = []

    def record(**values: Any) -> None:
        calls.append(values)
        raise typer.Exit

    def read(arguments: list[str]) -> Given:
        calls.clear()
        try:
            program(args=["episodic", "-m", "x", *arguments], standalone_mode=False)
        except typer.BadParameter as error:
            raise UsageError(str(error), fix="--help") from error
        return EvaluationOptions.read_values(calls[0])

    monkeypatch.setattr(fsbench, "evaluate", record, raising=False)
    program = build_program(["episodic"])
    return read


BARE = st.sampled_from(
    [
        *("1", "5", "010", "0x1f", "1e3", "1_000", "1:30", "2.0", "2.7", "nan", ".inf"),
        *("yes", "no", "~", "null", "true", "2020-01-01", "cdfsl"),
    ]
)
"""What YAML takes for numbers, flags, dates and nothing where it stands bare."""
FREE = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Z")), min_size=1, max_size=12)
WORDS = st.one_of(
    BARE.map(lambda word: (word, word)),
    st.one_of(BARE, FREE.filter(lambda word: word[0] != "-")).map(
        lambda word: (word, json.dumps(word, ensure_ascii=False))
    ),
)
"""A word, and how a file writes it."""
PLAIN = st.one_of(st.integers(-5, 10**6), st.booleans(), st.floats(), BARE, FREE)
SINGLE = [
    *("episodes", "way", "seed", "threads", "batch-size", "limit"),
    *("protocol", "bn_mode", "name"),
]
MANY = ["tasks", "shots", "heads", "data", "set"]
KEYS = st.sampled_from([*SINGLE, *MANY])


@SIZES
def test_words_mean_what_they_mean_on_the_command_line(
    size: int, read_options: Reader, tmp_path: Path, tally: Tally
) -> None:
    """Unquoted or quoted, in YAML: 010 is ten, `no` is no number, 1:30 is no 90."""
    path = tmp_path / "a.yaml"

    def check(key: str, pairs: list[tuple[str, str]], listed: bool) -> None:
        many = key in MANY and listed
        words, written = zip(*(pairs if many else pairs[:1]), strict=True)
        path.write_text(f"{key}: " + (f"[{', '.join(written)}]" if many else written[0]) + "\n")
        try:
            expected = read_options([part for w in words for part in (f"--{key}", w)])
        except UsageError:
            expected = None
        if any(part.startswith("py:") for w in words for part in w.split(",")):
            expected = None
        outcome = tally.attempt(lambda: read_options(["-C", str(path)]), UsageError, str(path))
        assert outcome == expected, path.read_text()

    tally.explore(size, check, KEYS, st.lists(WORDS, min_size=1, max_size=3), st.booleans())


LEAVES = st.one_of(st.none(), PLAIN, st.sampled_from(["py:os:system", "a, py:os:getcwd"]))
VALUES = nest(LEAVES, st.text(max_size=3))


def as_toml(values: Given) -> str:
    """JSON's scalars and lists are TOML's as well, but for null."""
    return "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in values.items())


@SIZES
def test_typed_files(size: int, read_options: Reader, tmp_path: Path, tally: Tally) -> None:
    """JSON and TOML: numbers and flags as typed; nothing else is turned into a number."""

    def check(values: Given, kind: str) -> None:
        path = tmp_path / f"a.{kind}"
        path.write_text(json.dumps(values) if kind == "json" else as_toml(values))
        outcome = tally.attempt(lambda: read_options(["-C", str(path)]), UsageError, "a.")
        for key, value in values.items() if outcome is not None else ():
            name = key.replace("-", "_")
            assert not isinstance(value, dict) and value is not None  # noqa: PT018
            if isinstance(value, int | float) and name in {"episodes", "seed", "way", "threads"}:
                assert type(value) is int
                assert outcome is not None
                assert outcome[name] == value

    keys = st.one_of(KEYS, st.sampled_from(["overwrite", "yes", "config", "help", "model"]),
                     st.text(max_size=4))  # fmt: skip
    mappings = st.dictionaries(keys, VALUES, max_size=2)
    tally.explore(size, check, mappings, st.sampled_from(["json", "toml"]))


SNIPPETS = st.sampled_from(
    [
        *("tasks: ", "&a ", "*a", "[", "]", "{", "}", "\n", "- ", ": ", "'", '"', "|", "!x ", "\t"),
        *("!!python/object/apply:os.system [id]", "seed: 3\n", "episodes = 4\n", "=", "#", "? "),
        *("\ufeff", "\x00", "%YAML 9.9\n", "---\n"),
    ]
)


@SIZES
def test_any_text_at_all(size: int, read_options: Reader, tmp_path: Path, tally: Tally) -> None:
    def check(parts: list[str], kind: str, encoding: str) -> None:
        path = tmp_path / f"a.{kind}"
        path.write_bytes("".join(parts).encode(encoding, "replace"))
        tally.attempt(lambda: read_options(["-C", str(path)]), FsbenchError, "a.")

    parts = st.lists(st.one_of(SNIPPETS, st.text(max_size=5)), max_size=8)
    valid = st.just(["seed: 3\n"])
    kinds = st.sampled_from(["yaml", "json", "toml", "x"])
    encodings = st.sampled_from(["utf8", "utf8", "utf-16", "latin-1"])
    tally.explore(size, check, st.one_of(valid, parts), kinds, encodings)
