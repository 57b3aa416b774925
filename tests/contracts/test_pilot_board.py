"""The committed pilot board keeps its numbers, tiers and digests.

`golden/pilot_board.json` was written by fsbench 0.1 before modules were renamed and merged: the
tables of `fsbench leaderboard show --board leaderboard/entries --format json`, and of every result
the task, spec digest, weights hash and score.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fsbench.cli.main import build
from fsbench.core.schema import Result

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = ROOT / "leaderboard" / "entries"
GOLDEN = json.loads((ROOT / "tests" / "golden" / "pilot_board.json").read_text(encoding="utf8"))
RESULTS: dict[str, list[Any]] = GOLDEN["results"]


@pytest.fixture(scope="module")
def tables() -> list[dict[str, Any]]:
    arguments = ["leaderboard", "show", "--board", str(ENTRIES), "--format", "json"]
    outcome = CliRunner().invoke(build(), arguments)
    assert outcome.exit_code == 0, outcome.output
    shown: list[dict[str, Any]] = json.loads(outcome.stdout)
    return shown


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
