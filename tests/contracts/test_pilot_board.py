"""The committed pilot board keeps its numbers, tiers and digests.

`golden/pilot_board.json` was written by fsbench 0.1 before modules were renamed and merged, but for
the rows of SEAL, which were made anew: of every result the task, spec digest, weights hash and
score. `golden/pilot_tiers_2.json` has the tiers, with the seeds of a recipe as one row.
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
from leaderboard.board.tables import rank_tracks
from leaderboard.methods.board import read_method_boards

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = ROOT / "leaderboard" / "entries"
GOLDEN = json.loads((ROOT / "tests" / "golden" / "pilot_board.json").read_text(encoding="utf8"))
RESULTS: dict[str, list[Any]] = GOLDEN["results"]


TIERS = json.loads((ROOT / "tests" / "golden" / "pilot_tiers_2.json").read_text(encoding="utf8"))


@pytest.fixture(scope="module")
def entries() -> list[BoardEntry]:
    return Board.open(ENTRIES).entries()


def compact_tiers(entries: list[BoardEntry]) -> dict[str, dict[str, Any]]:
    """Return track -> entry -> its tier or why it has none."""
    tables = rank_tracks(Board.open(ENTRIES).file, entries)
    return {
        table.track.label: {e.name: e.tier or e.reason for e in table.ranking.entries}
        for table in tables
        if table.track
    }


def test_tiers_are_those_of_the_golden_file(entries: list[BoardEntry]) -> None:
    """Refresh on purpose: python tests/contracts/test_pilot_board.py"""
    tiers = compact_tiers(entries)
    assert tiers == TIERS
    assert [list(table) for table in tiers.values()] == [list(table) for table in TIERS.values()]


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
    assert table.seed_errors.scores["pilot-swr"][:2] == pytest.approx(
        (method.overall.mean, method.overall.ci95_seeds)
    )


def test_the_command_shows_these_tiers() -> None:
    arguments = ["leaderboard", "show", "--board", str(ENTRIES), "--format", "json"]
    outcome = CliRunner().invoke(build(), arguments)
    assert outcome.exit_code == 0, outcome.output
    shown = json.loads(outcome.stdout)
    tiers = [{e["name"]: e["tier"] or e["reason"] for e in table["entries"]} for table in shown]
    assert tiers == list(TIERS.values())


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
