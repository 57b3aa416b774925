"""The board as people read it: golden Markdown, JSON without NaN, escaped text, published apart."""

import json
from pathlib import Path

import numpy as np
import pytest
from support import fakes

from fsbench.api.leaderboard import RankedBoard
from fsbench.results.table import shorten_columns
from leaderboard.ranking.tiers import Outcomes, rank_entries
from leaderboard.render.frame import make_frame
from leaderboard.render.md import escape_markdown
from leaderboard.render.terminal import make_published_tables, make_score_table
from leaderboard.tables import BoardTable, Row

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
    ranking = rank_entries(entries, COLUMNS, averaged={"eurosat": COLUMNS})
    facts = fakes.facts("seal", pretraining_data=("tinyimagenet",))
    rows = {
        entry.name: Row(
            entry.name,
            facts,
            entries[entry.name],
            column_flags={COLUMNS[0]: ("saw eurosat",)} if entry.name == "half" else {},
            source=0.5922 if entry.name == "seal" else None,
        )
        for entry in ranking.entries
    }
    return BoardTable(name="cdfsl", official=True, ranking=ranking, rows=rows)


def test_golden_markdown() -> None:
    """Refresh on purpose: python -m tests.test_leaderboard.test_render"""
    assert RankedBoard((board(),)).to_markdown() == GOLDEN.read_text(encoding="utf8")


def test_published_numbers_stand_once_below_all_tracks() -> None:
    text = RankedBoard((board(), board())).to_markdown()
    assert text.count("### published") == 1
    assert text.rindex("| tier |") < text.index("### published")


def test_rows_by_hand() -> None:
    table = make_score_table(make_frame(board()))
    whole = table.complete
    assert whole is not None
    assert table.title == whole.title == "cdfsl: linear@ibm 224px"
    assert table.columns == ("tier", "entry", "overall", "eurosat", "source", "notes")
    assert whole.columns == (
        "tier", "entry", "overall", "eurosat:5w1s", "eurosat:5w5s", "source", "notes",
    )  # fmt: skip
    rows = {row[1]: row for row in whole.rows}
    half_width = f"{1.96 * 0.1 * (100 / 99) ** 0.5 / 10 * 100:.2f}"  # sd .1, ddof 1, n 100
    assert rows["seal"] == (
        "1", "seal", f"66.18 ± {half_width}", f"57.75 ± {half_width}", f"74.61 ± {half_width}",
        "59.22", "-",
    )  # fmt: skip
    assert rows["twin"][0] == "1"
    assert rows["normal"][:3] == ("2", "normal", f"62.57 ± {half_width}")
    half = rows["halfᵃ"]
    assert half[0] == half[2] == half[4] == "-"
    assert half[-1] == "lacks 1 of 2 columns", "the reason is in the row"
    assert "a: saw eurosat, not official." in table.note
    assert rows["single"][3] == "10.00"
    assert rows["single"][0] == rows["single"][2] == "-"
    assert rows["single"][-1].startswith("not comparable: shares 1 outcomes")
    assert "Unranked, half: lacks 1 of 2 columns." in table.note, "where flags find no room"
    assert [row[1] for row in whole.rows][-2:] == ["halfᵃ", "single"], "unranked entries come last"
    assert {row[1]: row[3] for row in table.rows}["seal"] == f"66.18 ± {half_width}"


def test_published_numbers_stand_apart_on_the_boards_data_sets() -> None:
    (table,) = make_published_tables([board(), board()])
    accuracies = {row[:2]: row[2] for row in table.rows}
    assert len(accuracies) == len(table.rows)
    assert accuracies["seal-paper-seal", "eurosat:5w1s/linear"] == "57.75 ± 0.88"
    in_domain = "tinyimagenet:in-domain"
    assert accuracies["weight-compander-paper-wc", in_domain] == "65.93 (± 0.12)"
    assert "not ranked" in table.note
    assert not {row[1] for row in make_score_table(make_frame(board())).rows} & {
        name for name, _ in accuracies
    }


def test_json_is_finite_and_whole() -> None:
    content, *_ = json.loads(json.dumps(RankedBoard((board(),)).to_json(), allow_nan=False))
    entries = {entry["name"]: entry for entry in content["entries"]}
    assert entries["seal"]["tier"] == 1
    assert entries["seal"]["behind_leader"] is None
    assert entries["twin"]["behind_leader"]["p_adjusted"] == 1.0
    assert entries["half"]["missing"] == [COLUMNS[1]]
    assert entries["half"]["tier"] is None
    assert entries["half"]["reason"] == "lacks 1 of 2 columns"
    assert entries["seal"]["reason"] is None
    assert entries["single"]["ci95"][0] is None
    assert [entry["name"] for entry in content["published"]] == [e.name for e in board().published]


def test_frames_hold_numbers_and_the_reason() -> None:
    frame = RankedBoard((board(),)).to_frame()
    numbers = frame[["overall", "mean", "ci95", "gap", "gap_ci95", "p"]]
    assert set(numbers.dtypes.astype(str)) == {"float64"}
    assert (str(frame.tier.dtype), str(frame.n.dtype)) == ("Int64", "int64")
    half = frame[frame.entry == "half"]
    assert half.reason.tolist() == ["lacks 1 of 2 columns"]
    assert half.tier.isna().all()
    overall = frame[frame.column == "overall"].set_index("entry")
    assert overall["mean"]["seal"] == overall["overall"]["seal"] == pytest.approx(0.6618)
    empty = BoardTable("board")
    assert RankedBoard((empty,)).to_frame()[[*numbers]].dtypes.equals(numbers.dtypes)


def test_an_empty_board_says_how_to_fill_it() -> None:
    empty = RankedBoard((BoardTable("board"),))
    (table,) = empty.tables()
    assert table.rows == ()
    assert "fsbench submit" in table.note
    assert "fsbench submit" in empty.to_markdown()


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
    GOLDEN.write_text(RankedBoard((board(),)).to_markdown(), encoding="utf8")
