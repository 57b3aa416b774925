"""Result files of others: the very figures that their records hold, or a refusal by name."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz.cases import SIZES, Tally
from hypothesis import strategies as st
from support import fakes
from support.cli import call

from fsbench.core.errors import ValidationFailed
from fsbench.results.entry import Entry
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_verified

DAMAGES: dict[str, Callable[[bytes, int, bytes], bytes]] = {
    "as it is": lambda data, at, more: data,
    "cut": lambda data, at, more: data[:at],
    "changed": lambda data, at, more: data[:at] + more[:1] + data[at + 1 :],
    "less": lambda data, at, more: data[:at] + data[at + 1 :],
    "more": lambda data, at, more: data[:at] + more + data[at:],
    "zeros": lambda data, at, more: data[:at] + bytes(len(data) - at),
    "behind": lambda data, at, more: data + more,
    "other": lambda data, at, more: more,
}


@pytest.fixture
def result(tmp_path: Path) -> Path:
    fakes.write(tmp_path / "r")
    return next((tmp_path / "r").rglob("entry.json")).parent


def figures(entry: Entry) -> tuple[object, ...]:
    """What a table shows and a ranking compares.

    A spec of other episodes is refused where these are drawn again: when it is submitted.
    """
    (cell,) = entry.cells
    result = cell.result
    return result.score, result.column, digest_records(cell.records), result.flags


@SIZES
@pytest.mark.parametrize("name", ["entry.json", "outcomes-*"])
def test_damaged_results(size: int, name: str, result: Path, tally: Tally) -> None:
    """No byte of either file changes a figure unseen."""
    first = read_verified(result)
    file = next(result.glob(name))
    whole = file.read_bytes()

    def check(how: str, place: int, more: bytes) -> None:
        file.write_bytes(DAMAGES[how](whole, place % len(whole), more))
        outcome = tally.attempt(lambda: read_verified(result), ValidationFailed, result.name)
        assert outcome is None or figures(outcome) == figures(first)

    places, more = st.integers(0, 10**6), st.binary(min_size=1, max_size=40)
    try:
        tally.explore(size, check, st.sampled_from([*DAMAGES]), places, more)
    finally:
        file.write_bytes(whole)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@SIZES
def test_any_json_in_the_place_of_a_result(size: int, result: Path, tally: Tally) -> None:
    file = result / "entry.json"
    text = file.read_text()
    whole = json.loads(text)

    def check(keys: list[str], value: object) -> None:
        file.write_text(json.dumps({**whole, **dict.fromkeys(keys, value)} if keys else value))
        tally.attempt(lambda: read_verified(result), ValidationFailed, result.name)

    read_verified(result)
    tally.ended["taken"] += 1
    keys = st.lists(st.sampled_from([*whole, "extra"]), max_size=2)
    tally.explore(size + 1, check, keys, JSON)
    file.write_text(text)


@pytest.mark.parametrize("damage", ["cut", "other", "zeros"])
@pytest.mark.parametrize("name", ["entry.json", "outcomes-*"])
def test_the_command_line_names_the_result(
    damage: str, name: str, result: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = next(result.glob(name))
    file.write_bytes(DAMAGES[damage](file.read_bytes(), 300, b"{}"))
    root, out = tmp_path / "r", tmp_path / "out"
    for arguments in (
        ["results", "show", str(root)],
        ["results", "merge", str(root), str(root), "-o", str(out)],
    ):
        code = call(*arguments)
        shown = capfd.readouterr().err
        assert code in {2, 5}, shown
        assert "Traceback" not in shown
    assert code == 5
    assert result.name in shown
    assert not out.exists()
