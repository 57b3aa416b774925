"""The committed pilot board keeps its numbers, tiers and digests.

`golden/pilot_board.json` was written by fsbench 0.1 before modules were renamed and merged, but for
the rows of SEAL, which were made anew: the tables of `fsbench leaderboard show --board
leaderboard/entries --format json`, and of every result the task, spec digest, weights hash and
score. Its tiers are those of the rule `leader-tiers-1`; those of `simultaneous-tiers-2`, by which
the board is ranked, are in `golden/pilot_tiers_2.json`, with the seeds of a recipe as one row.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fsbench.cli.main import build
from fsbench.core.schema import Result
from leaderboard.board.board import Board, BoardEntry
from leaderboard.board.definition import BoardFile
from leaderboard.board.tables import rank_tracks
from leaderboard.methods.board import read_method_boards
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
    tables = rank_tracks(Board.open(ENTRIES).file, entries)
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
    ranked = rank_tracks(Board.open(ENTRIES).file, entries)
    for older, table in zip(tables, ranked, strict=True):
        before = {entry["name"]: entry["tier"] for entry in older["entries"]}
        for row in (row for tier in table.ranking.tiers for row in tier):
            seeds = [seed.name for seed in table.seeds.get(row.name, {}).values()] or [row.name]
            assert row.tier is not None
            assert row.tier <= max(before[name] for name in seeds), "a wider rule only joins tiers"


def test_seeds_of_a_recipe_are_one_row(entries: list[BoardEntry]) -> None:
    table = rank_tracks(Board.open(ENTRIES).file, entries)[0]
    assert sorted(e.name for seeds in table.seeds.values() for e in seeds.values()) == sorted(
        entry.name for entry in entries if entry.name not in table.names
    )
    assert [seed.name for seed in table.seeds["pilot-swr"].values()] == [
        f"pilot-swr-s{seed}" for seed in (0, 1, 2)
    ]
    row = next(row for row in table.ranking.entries if row.name == "pilot-swr")
    assert row.overall == pytest.approx(
        np.mean([seed.overall for seed in table.seeds["pilot-swr"].values()])
    )
    board = next(b for b in read_method_boards(ENTRIES) if "linear" in b.track)
    method = next(method for method in board.rows if method.name == "swr")
    assert method.overall is not None
    assert table.seed_errors.measure_row("pilot-swr")[:2] == pytest.approx(
        (method.overall.mean, method.overall.ci95_seeds)
    )


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
