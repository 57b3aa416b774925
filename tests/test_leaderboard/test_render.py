"""The board as people read it: golden Markdown, JSON without NaN, escaped text, published apart."""

import json
from pathlib import Path

import numpy as np
import pytest

from fsbench.core.tables import TextTable
from fsbench.results.table import shorten_columns
from leaderboard.published import load_published
from leaderboard.ranking.tiers import Outcomes, rank_entries
from leaderboard.reports.render import (
    build_board_json,
    escape_markdown,
    make_board_tables,
    make_measured_table,
    make_published_tables,
    render_board,
)
from leaderboard.tables import BoardTable

PUBLISHED = tuple(row for row in load_published() if row.name.startswith(("seal", "weight")))
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "board.md"
COLUMNS = ("eurosat:5w1s/linear@ibm 224px", "eurosat:5w5s/linear@ibm 224px")


def outcomes(mean: float, spread: float = 0.1, n: int = 100) -> Outcomes:
    """Half of the episodes lie `spread` above the mean, half below."""
    return Outcomes(np.arange(n), mean + spread * np.where(np.arange(n) % 2, 1.0, -1.0), "a spec")


def board() -> BoardTable:
    entries = {
        "seal": {COLUMNS[0]: outcomes(0.5775), COLUMNS[1]: outcomes(0.7461)},
        "twin": {COLUMNS[0]: outcomes(0.5775), COLUMNS[1]: outcomes(0.7461)},
        "normal": {COLUMNS[0]: outcomes(0.5340), COLUMNS[1]: outcomes(0.7174)},
        "half": {COLUMNS[0]: outcomes(0.9)},
        "single": {COLUMNS[0]: outcomes(0.2, n=1), COLUMNS[1]: outcomes(0.2, n=1)},
    }
    return BoardTable(
        name="cdfsl",
        official=True,
        ranking=rank_entries(entries, COLUMNS),
        flags={name: ("saw eurosat",) if name == "half" else () for name in entries},
        sources={name: 0.5922 if name == "seal" else None for name in entries},
        links=dict.fromkeys(entries, "https://example.org"),
        published=PUBLISHED,
    )


def test_golden_markdown() -> None:
    """Refresh on purpose: python -m tests.test_leaderboard.test_render"""
    assert render_board([board()]) == GOLDEN.read_text(encoding="utf8")


def test_published_tables_stand_once_below_all_tracks() -> None:
    text = render_board([board(), board()])
    assert text.count("### published") == render_board([board()]).count("### published") > 0
    assert text.rindex("| tier |") < text.index("### published")


def test_rows_by_hand() -> None:
    table = make_measured_table(board())
    assert table.title == "cdfsl (official): linear@ibm 224px"
    assert table.columns == (
        "tier", "entry", "overall", "eurosat:5w1s", "eurosat:5w5s", "source", "flags",
    )  # fmt: skip
    rows = {row[1]: row for row in table.rows}
    half_width = f"{1.96 * 0.1 * (100 / 99) ** 0.5 / 10 * 100:.2f}"  # sd .1, ddof 1, n 100
    assert rows["seal"] == (
        "1", "seal", "66.18", f"57.75 ± {half_width}", f"74.61 ± {half_width}", "59.22", "-",
    )  # fmt: skip
    assert rows["twin"][0] == "1"
    assert rows["normal"][:3] == ("2", "normal", "62.57")
    assert rows["half"][0] == rows["half"][2] == rows["half"][4] == "-"
    assert rows["half"][-1] == "saw eurosat"
    assert rows["single"][3] == "10.00"
    assert rows["single"][0] == rows["single"][2] == "-"
    assert [row[1] for row in table.rows][-2:] == ["half", "single"], "unranked entries come last"
    assert "Unranked, half: lacks 1 of 2 columns." in table.note
    assert "Unranked, single: not comparable: shares 1 outcomes" in table.note


def rows_of(table: TextTable) -> dict[str, str]:
    """Entry -> accuracy."""
    return {row[0]: row[3] for row in table.rows}


def test_published_rows_stand_apart_on_the_boards_data_sets() -> None:
    table, in_domain = make_published_tables([board(), board()])
    assert table.columns[0] == "task"
    assert {row[0].partition(":")[0] for row in table.rows} == {"eurosat", "tinyimagenet"}
    assert rows_of(in_domain) == {
        "seal-paper-freeze": "51.17",
        "seal-paper-reinit": "58.87",
        "seal-paper-reverse": "41.05",
        "weight-compander-paper-normal": "65.08 (± 0.38)",
        "weight-compander-paper-wc": "65.93 (± 0.12)",
    }
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["eurosat:5w1s/linear"]["seal-paper-seal"] == "57.75 ± 0.88"
    assert "not ranked" in table.note
    measured_names = {row[1] for row in make_measured_table(board()).rows}
    assert not measured_names & set(table.columns)


def test_json_is_finite_and_whole() -> None:
    content = json.loads(json.dumps(build_board_json(board()), allow_nan=False))
    entries = {entry["name"]: entry for entry in content["entries"]}
    assert entries["seal"]["tier"] == 1
    assert entries["seal"]["behind_leader"] is None
    assert entries["twin"]["behind_leader"]["p_adjusted"] == 1.0
    assert entries["half"]["missing"] == [COLUMNS[1]]
    assert entries["half"]["tier"] is None
    assert entries["half"]["reason"] == "lacks 1 of 2 columns"
    assert "reason" not in entries["seal"]
    assert entries["single"]["scores"][COLUMNS[0]]["ci95"] is None
    assert [entry["name"] for entry in content["published"]] == [e.name for e in PUBLISHED]


def test_an_empty_board_says_how_to_fill_it() -> None:
    empty = BoardTable("board", False, rank_entries({}, []), {}, {}, {}, ())
    assert [table.rows for table in make_board_tables([empty])] == [()]
    assert "fsbench submit" in make_board_tables([empty])[0].note
    assert "fsbench submit" in render_board([empty])


@pytest.mark.parametrize(
    ("columns", "labels", "common"),
    [
        (("a:5w1s/linear@ibm 32px",), ["a:5w1s/linear@ibm 32px"], ""),
        (("a:probe 32px", "a:5w1s/linear@ibm 32px"), ["a:probe", "a:5w1s"], "linear@ibm 32px"),
        (
            ("a:5w1s/linear@ibm 32px", "a:5w1s/linear@ibm 64px"),
            ["a:5w1s 32px", "a:5w1s 64px"],
            "linear@ibm",
        ),
        (
            ("a:5w1s/linear@ibm 32px", "a:5w1s/linear@startup 32px"),
            ["a:5w1s/linear@ibm", "a:5w1s/linear@startup"],
            "32px",
        ),
    ],
)
def test_what_all_columns_share_is_said_once(
    columns: tuple[str, ...], labels: list[str], common: str
) -> None:
    assert shorten_columns(columns) == (labels, common)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", r"a\|b"),
        ("<script>", "&lt;script&gt;"),
        ("[x](javascript:y)", r"\[x\](javascript:y)"),
        ("two\nlines", "two lines"),
        ("*_`#", r"\*\_\`\#"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, expected: str) -> None:
    assert escape_markdown(text) == expected


if __name__ == "__main__":
    GOLDEN.write_text(render_board([board()]), encoding="utf8")
