"""The committed pilot board keeps its numbers, tiers and digests.

`golden/pilot_board.json` was written by fsbench 0.1 before modules were renamed and merged: the
tables of `fsbench leaderboard show --board leaderboard/entries --format json`, and of every result
the task, spec digest, weights hash and score. Its tiers are those of the rule `leader-tiers-1`;
those of `simultaneous-tiers-2`, by which the board is ranked, are in `golden/pilot_tiers_2.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fsbench.cli.main import build
from fsbench.core.schema import Result
from leaderboard.board.board import Board, BoardEntry
from leaderboard.board.definition import BoardFile
from leaderboard.board.tables import rank_tracks
from leaderboard.reports.render import build_board_json

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = ROOT / "leaderboard" / "entries"
GOLDEN = json.loads((ROOT / "tests" / "golden" / "pilot_board.json").read_text(encoding="utf8"))
RESULTS: dict[str, list[Any]] = GOLDEN["results"]


TIERS = json.loads((ROOT / "tests" / "golden" / "pilot_tiers_2.json").read_text(encoding="utf8"))


@pytest.fixture(scope="module")
def entries() -> list[BoardEntry]:
    return Board.open(ENTRIES).entries()


@pytest.fixture(scope="module")
def tables(entries: list[BoardEntry]) -> list[dict[str, Any]]:
    """The tables by the older rule."""
    file = BoardFile(name="board", ranking="leader-tiers-1")
    return [build_board_json(table) for table in rank_tracks(file, entries)]


def compact_tiers(entries: list[BoardEntry]) -> dict[str, dict[str, Any]]:
    """Return track -> entry -> its tier by the newest rule, or why it has none."""
    tables = rank_tracks(BoardFile(name="board"), entries)
    return {
        table.track.label: {e.name: e.tier or e.reason for e in table.ranking.entries}
        for table in tables
        if table.track
    }


def test_tiers_of_the_newest_rule(entries: list[BoardEntry], tables: list[dict[str, Any]]) -> None:
    """Refresh on purpose: python tests/contracts/test_pilot_board.py"""
    tiers = compact_tiers(entries)
    assert tiers == TIERS
    assert [list(table) for table in tiers.values()] == [list(table) for table in TIERS.values()]
    for older, newest in zip(tables, tiers.values(), strict=True):
        before = {entry["name"]: entry["tier"] for entry in older["entries"]}
        ranked = [name for name in newest if isinstance(newest[name], int)]
        assert all(newest[name] <= before[name] for name in ranked), "a wider rule only joins tiers"


def test_the_board_is_shown_by_the_newest_rule() -> None:
    arguments = ["leaderboard", "show", "--board", str(ENTRIES), "--format", "json"]
    outcome = CliRunner().invoke(build(), arguments)
    assert outcome.exit_code == 0, outcome.output
    shown = json.loads(outcome.stdout)
    tiers = [{e["name"]: e["tier"] or e["reason"] for e in table["entries"]} for table in shown]
    assert tiers == list(TIERS.values())


def test_tables_tiers_and_scores_are_those_of_the_golden_file(tables: list[dict[str, Any]]) -> None:
    def compact(entry: dict[str, Any]) -> dict[str, Any]:
        scores = {c: [s["mean"], s["ci95"], s["n"]] for c, s in entry["scores"].items()}
        return {"tier": entry["tier"], "overall": entry["overall"], "scores": scores}

    compared = [
        {
            "track": table["track"],
            "columns": table["columns"],
            "entries": {entry["name"]: compact(entry) for entry in table["entries"]},
        }
        for table in tables
    ]
    assert compared == GOLDEN["tables"]
    orders = [list(table["entries"]) for table in compared]
    assert orders == [list(table["entries"]) for table in GOLDEN["tables"]]


def test_every_result_keeps_its_place_and_its_digests() -> None:
    read = {}
    for path in sorted(ENTRIES.glob("*/*/*/*/*.json")):
        result = Result.model_validate_json(path.read_text(encoding="utf8"))
        assert result.spec.digest() == result.spec_digest, path
        score = result.score.model_dump(mode="json")
        name = path.relative_to(ENTRIES).as_posix()
        read[name] = [str(result.task), result.spec_digest, result.backbone.weights_hash, score]
    assert read == RESULTS


if __name__ == "__main__":
    path = ROOT / "tests" / "golden" / "pilot_tiers_2.json"
    path.write_text(json.dumps(compact_tiers(Board.open(ENTRIES).entries()), indent=1) + "\n")
