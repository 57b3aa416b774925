"""Numbers stay: what was measured and shown is equal to tests/golden/numbers.json.

A commit that must change a number changes nothing else, says why, and writes the file anew with
`PYTHONPATH=tests python -m support.snapshot --write`. Digests of recipes are in test_recipes.py.
"""

import json

import pytest
from support import snapshot
from support.cli import CommandLine
from support.snapshot import compare, find_differences

SHOWN = 40
"""Differences that a failure lists."""


@pytest.mark.parametrize("section", snapshot.SECTIONS)
def test_numbers_are_those_of_the_golden_file(section: str) -> None:
    assert set(snapshot.read_golden()) == set(snapshot.SECTIONS)
    differences = find_differences(section)
    listed = "\n".join(differences[:SHOWN])
    assert not differences, f"{len(differences)} numbers changed:\n{listed}"


def test_the_command_shows_the_tiers_of_the_pilot_board(cli: CommandLine) -> None:
    tables = cli.json("leaderboard", "show", "--board", snapshot.BOARDS["pilot"])
    shown = [{e["name"]: e["tier"] or e["reason"] for e in table["entries"]} for table in tables]
    golden = snapshot.read_golden()["boards"]["pilot"].values()
    tiers = [{name: row["tier"] for name, row in table["ranked"].items()} for table in golden]
    expected = [t | table["unranked"] for t, table in zip(tiers, golden, strict=True)]
    assert sorted(shown, key=len) == sorted(expected, key=len)


def test_a_difference_says_where_what_was_and_what_is() -> None:
    was = {"board": {"row": {"tier": 1, "p": 0.25, "columns": [0.5, None]}, "gone": {"tier": 2}}}
    now = {"board": {"row": {"tier": 2, "p": 0.25 + 1e-12, "columns": [0.5, 0.1]}}}
    assert compare(was, now) == [
        "board > gone > tier: was 2, is 'absent'",
        "board > row > columns > 1: was None, is 0.1",
        "board > row > tier: was 1, is 2",
    ]
    for a, b in ((0.25, 0.25001), (1, True), (1e-13, 2e-13), ([1.0], [1.0, 2.0]), ({}, [])):
        assert len(compare(a, b)) == 1


def test_the_file_is_written_as_it_is_read() -> None:
    stored = snapshot.GOLDEN.read_text(encoding="utf8")
    assert snapshot.write_json(json.loads(stored)) + "\n" == stored
