"""Every format: hostile names stay names, and what was written reads back."""

import csv
import io
import json
import math
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sheets import COLUMNS, ERROR, HOSTILE, constant, hostile, swinging, view

from fsbench.core.errors import UnknownName
from fsbench.core.statistics import Score
from leaderboard.reports import FORMATS
from leaderboard.reports.csv import guard_formula
from leaderboard.reports.md import format_markdown_number
from leaderboard.reports.table import ReportRow, ReportScore, ReportTable, build_report_table

ONE, FIVE = COLUMNS
NAMES = FORMATS.names()


def made(shape: str, *sheets: ReportTable) -> str:
    return FORMATS.load(shape).make(sheets)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def small() -> ReportTable:
    entries = {
        "base": {ONE: constant(0.5), FIVE: constant(0.6)},
        "gain": {ONE: swinging(0.5 + 5 * ERROR), FIVE: constant(0.6)},
        "part": {ONE: swinging(1 / 3)},
    }
    return build_report_table(view(entries), "base")


def test_formats_list_themselves() -> None:
    assert {"csv", "html", "json", "latex", "md"} <= set(NAMES)
    with pytest.raises(UnknownName, match="latex"):
        FORMATS.load("latx")


@pytest.mark.parametrize("shape", NAMES)
def test_every_format_makes_any_sheet(shape: str) -> None:
    assert FORMATS.load(shape).suffix.isalnum()
    for given_sheets in (
        (),
        (hostile(),),
        (small(), hostile()),
        (build_report_table(view({}, ())),),
    ):
        text = made(shape, *given_sheets)
        assert text == made(shape, *given_sheets), "same input, same bytes"
        assert "nan" not in text
        assert "None" not in text


def test_csv_parses_back_to_the_same_floats() -> None:
    table = small()
    cells = {(r["entry"], r["column"]): r for r in rows(made("csv", table))}
    for row in table.rows:
        for column, cell in row.cells.items():
            line = cells[row.name, column]
            assert (float(line["mean"]), int(line["n"])) == (cell.score.mean, cell.score.n)
            assert float(line["ci95"]) == cell.score.ci95
            assert line["best"] == str(int(cell.best))
            if cell.gap is not None:
                assert float(line["gap_to_control"]) == cell.gap.gap
                assert float(line["p_holm"]) == cell.p
    assert cells["base", "overall"]["mean"] == repr(table.rows[1].overall.score.mean)  # type: ignore[union-attr]
    assert cells["base", ONE]["gap_to_control"] == cells["base", ONE]["control"] == ""
    assert cells["gain", ONE]["control"] == "base"
    assert cells["part", ONE]["tier"] == ""
    assert ("part", "overall") not in cells
    assert {line["track"] for line in cells.values()} == {"ibm 64px"}


def test_csv_ends_lines_as_the_standard_says() -> None:
    text = made("csv", hostile())
    assert text.count("\r\n") == 1 + len(HOSTILE)
    assert "\n" not in text.replace("\r\n", "")


def test_no_name_becomes_a_formula() -> None:
    names = {row["entry"] for row in rows(made("csv", hostile()))}
    assert names == {"'=1+1", *HOSTILE[1:]}
    assert not any(name.startswith(("=", "+", "-", "@")) for name in names)


@given(st.text())
def test_guarded_text_is_no_formula_and_loses_nothing(text: str) -> None:
    shown = guard_formula(text)
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert shown in {text, "'" + text}


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 10**9))
def test_numbers_of_a_csv_survive(mean: float, ci95: float, n: int) -> None:
    row = ReportRow("a", 1, {"c": ReportScore(Score(mean, ci95, n), True)}, None, mean)
    line, source = rows(made("csv", ReportTable("t", "", ("c",), (row,))))
    assert (float(line["mean"]), float(line["ci95"]), int(line["n"])) == (mean, ci95, n)
    assert (source["column"], float(source["mean"]), source["n"]) == ("source", mean, "")


def test_json_holds_everything() -> None:
    table = small()
    (read,) = json.loads(made("json", table))
    entries = {entry["name"]: entry for entry in read["entries"]}
    gain = entries["gain"]["scores"][ONE]
    assert gain["mean"] == pytest.approx(0.5 + 5 * ERROR)
    assert gain["best"] is True
    assert gain["over_control"]["gap"] == pytest.approx(5 * ERROR)
    assert entries["base"]["scores"][ONE]["over_control"] is None
    assert entries["part"]["overall"] is None
    assert read["control"] == "base"
    assert read["columns"] == list(COLUMNS)
    assert [e["name"] for e in json.loads(made("json", hostile()))[0]["entries"]] == list(
        reversed(HOSTILE)
    )


def test_markdown_by_hand() -> None:
    lines = made("md", small()).splitlines()
    half = f"{1.96 * 100 * ERROR:.2f}"
    assert lines[0] == "### mine: linear@ibm 64px"
    assert lines[2] == "| model | eurosat:5w1s | eurosat:5w5s | overall |"
    assert lines[3] == "| --- | ---: | ---: | ---: |"
    up, mean = f"{50 + 500 * ERROR:.2f}", f"{55 + 250 * ERROR:.2f}"
    assert lines[4] == (
        f"| gain | **{up} ± {half}**<sup>†</sup> | **60.00 ± 0.00** "
        f"| **{mean} ± {1.96 * 50 * ERROR:.2f}**<sup>†</sup> |"
    )
    assert lines[5] == "| base | 50.00 ± 0.00 | **60.00 ± 0.00** | 55.00 ± 0.00 |"
    assert lines[6] == f"| part | 33.33 ± {half}<sup>‡</sup> | - | - |"


def test_markdown_has_as_many_cells_in_every_row() -> None:
    table = [x for x in made("md", hostile()).splitlines() if x.startswith("|")]
    assert len(table) == 2 + len(HOSTILE)
    assert {line.replace(r"\|", "").count("|") for line in table} == {3}
    assert "<script" not in "".join(table)


def test_flags_and_marks_share_their_place() -> None:
    table = hostile()
    assert format_markdown_number(table.rows[0].cells[table.columns[0]], table).endswith(
        "<sup>†a</sup>"
    )


class Reader(HTMLParser):
    """Tags, and the text of table cells in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name in {"src", "href"} or name.startswith("on")]
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_html_shows_names_as_they_are_and_loads_nothing() -> None:
    reader = Reader()
    text = made("html", hostile())
    reader.feed(text)
    shown = [cell.strip() for cell in reader.cells]
    assert [name for name in shown if name in HOSTILE] == list(reversed(HOSTILE))
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert "url(" not in text
    assert "@import" not in text
    best = next(cell for cell in shown if cell.startswith("70.00"))
    assert best.split() == ["70.00", "±", f"{1.96 * 100 * ERROR:.2f}†a"]
    assert reader.tags.count("b") == 1
    assert not math.isnan(len(text))
