"""The command shows the committed pilot board with the tiers of the snapshot of numbers."""

import json

import pytest
from support.snapshot import BOARDS, read_golden
from typer.testing import CliRunner

from fsbench.cli.main import build
from leaderboard.methods import build_from_table
from leaderboard.tables import rank_board


def test_the_command_shows_the_tiers_of_the_snapshot() -> None:
    arguments = ["leaderboard", "show", "--board", str(BOARDS["pilot"]), "--json"]
    outcome = CliRunner().invoke(build(), arguments)
    assert outcome.exit_code == 0, outcome.output
    shown = [
        {entry["name"]: entry["tier"] or entry["reason"] for entry in table["entries"]}
        for table in json.loads(outcome.stdout)
    ]
    golden = read_golden()["boards"]["pilot"].values()
    tiers = [{name: row["tier"] for name, row in table["ranked"].items()} for table in golden]
    tables = [t | table["unranked"] for t, table in zip(tiers, golden, strict=True)]
    assert sorted(shown, key=len) == sorted(tables, key=len)


def test_a_row_has_the_mean_and_interval_of_its_method() -> None:
    for table in rank_board(BOARDS["pilot"]):
        rows = {row.name: row for row in table.ranking.entries}
        methods = {row.name: row for b in build_from_table(table) for row in b.rows}
        assert set(table.seeds) <= set(methods)
        for name, seeds in table.seeds.items():
            assert [*seeds] == [*methods[name].seeds] != []
            score = methods[name].overall
            if score is not None and rows[name].tier is not None:
                expected = (score.mean, score.ci95_seeds)
                assert table.seed_errors.scores[name][:2] == pytest.approx(expected)
