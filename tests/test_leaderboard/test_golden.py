"""Boards written by schema 1 of board.json render as they did then."""

import json
import re
from pathlib import Path

import pytest

from leaderboard.board.board import Board
from leaderboard.board.tables import rank_tracks
from leaderboard.reports import render

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "boards_1"
BOARDS = ("free", "images", "named", "transductive")


def without_findings(text: str) -> str:
    """The tables as they were before the finding stood below the title."""
    return re.sub(r"(###[^\n]+)\n\n[^|\n][^\n]+\n\n\|", r"\1\n\n|", text)


def without_marks(text: str) -> str:
    """The tables as they were before numbers without a signed badge were marked."""
    return text.replace(f" {render.SELF_NOTE}", "").replace(render.SELF_MARK, "")


@pytest.mark.parametrize("name", BOARDS)
def test_an_old_board_reads_as_it_did(name: str) -> None:
    board = Board.open(GOLDEN / name)
    older = board.file.model_copy(update={"ranking": "leader-tiers-1"})
    views = rank_tracks(older, board.entries())
    text = without_findings(render.render_board(views))
    assert without_marks(text) == (GOLDEN / f"{name}.md").read_text()
    for number in re.findall(r"\d\d\.\d\d(?: ± \d+\.\d\d)?(.)", text.partition("### published")[0]):
        assert number == render.SELF_MARK, "no entry of these boards has a signed badge"
    for record, old in zip(
        map(render.build_board_json, views),
        json.loads((GOLDEN / f"{name}.json").read_text()),
        strict=True,
    ):
        for entry in record["entries"]:
            assert sorted(entry.pop("self_reported")) == sorted(entry["scores"])
        assert {key: record[key] for key in old} == old


def test_the_golden_boards_are_of_schema_1() -> None:
    for name in ("named", "transductive"):
        raw = json.loads((GOLDEN / name / "board.json").read_text())
        assert raw["schema_version"] == 1
        assert Board.open(GOLDEN / name).file.schema_version == 2
    assert not (GOLDEN / "free" / "board.json").exists()
