"""Every format: hostile names stay names, and what was written reads back."""

import csv
import io
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sheets import COLUMNS, ERROR, HOSTILE, constant, hostile, swinging, view

from fsbench.core.errors import UnknownName
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.render import FORMATS
from leaderboard.render.csv import guard_formula
from leaderboard.render.frame import OVERALL, ScoreFrame, make_frame

ONE, FIVE = COLUMNS
NAMES = FORMATS.names()


def made(shape: str, *frames: ScoreFrame) -> str:
    return FORMATS.load(shape)(frames)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def small() -> ScoreFrame:
    entries = {
        "base": {ONE: constant(0.5), FIVE: constant(0.6)},
        "gain": {ONE: swinging(0.5 + 5 * ERROR), FIVE: constant(0.6)},
        "part": {ONE: swinging(1 / 3)},
    }
    return make_frame(view(entries), "base")


def test_formats_list_themselves() -> None:
    assert {"csv", "html", "json", "latex", "md"} <= set(NAMES)
    with pytest.raises(UnknownName, match="latex"):
        FORMATS.load("latx")


@pytest.mark.parametrize("shape", NAMES)
def test_every_format_makes_any_frame(shape: str) -> None:
    for frames in ((), (hostile(),), (small(), hostile()), (make_frame(view({}, ())),)):
        text = made(shape, *frames)
        assert text == made(shape, *frames), "same input, same bytes"
        assert "nan" not in text
        assert "None" not in text


def test_csv_parses_back_to_the_same_floats() -> None:
    frame = small()
    cells = {(r["entry"], r["column"]): r for r in rows(made("csv", frame))}
    for score in frame.records():
        line = cells[score.entry, score.column]
        assert (float(line["mean"]), float(line["ci95"]), int(line["n"])) == score.score
        assert line["best"] == str(int(score.best))
        if score.control:
            assert (float(line["gap"]), float(line["p"])) == (score.gap, score.p)
    assert cells["base", "overall"]["mean"] == repr(frame.scores["base"][OVERALL].mean)
    assert cells["base", ONE]["overall"] == cells["base", "overall"]["mean"]
    assert cells["base", ONE]["gap"] == cells["base", ONE]["control"] == ""
    assert cells["part", ONE]["reason"] == "lacks 1 of 2 columns"
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


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(0, 1))
def test_numbers_of_a_csv_survive(values: list[float], source: float) -> None:
    outcomes = {"a": {ONE: Outcomes(np.arange(len(values)), np.array(values), "draws")}}
    table = view(outcomes, (ONE,), source=source)
    line, last = rows(made("csv", make_frame(table)))
    score = table.ranking.entries[0].scores[ONE]
    assert (float(line["mean"]), float(line["ci95"]), int(line["n"])) == score
    assert (last["column"], float(last["mean"]), last["n"]) == ("source", source, "0")


def test_json_holds_everything() -> None:
    (read,) = json.loads(made("json", small()))
    entries = {entry["name"]: entry for entry in read["entries"]}
    gain, names = entries["gain"], [column["name"] for column in read["columns"]]
    one = names.index(ONE)
    assert gain["mean"][one] == pytest.approx(0.5 + 5 * ERROR)
    assert one in gain["best"]
    assert gain["over_control"][ONE]["gap"] == pytest.approx(5 * ERROR)
    assert entries["base"]["over_control"] == {}
    assert entries["part"]["overall"] is None
    assert read["control"] == "base"
    assert names == list(COLUMNS)
    assert [e["name"] for e in json.loads(made("json", hostile()))[0]["entries"]] == list(
        reversed(HOSTILE)
    )


def test_markdown_by_hand() -> None:
    lines = made("md", small()).splitlines()
    half = f"{1.96 * 100 * ERROR:.2f}"
    assert lines[0] == "### mine: linear@ibm 64px"
    assert lines[4] == "| tier | entry | overall | eurosat:5w1s | eurosat:5w5s | notes |"
    assert lines[5] == "| --- | --- | --- | --- | --- | --- |"
    up, mean = f"{50 + 500 * ERROR:.2f}", f"{55 + 250 * ERROR:.2f}"
    assert lines[6] == (
        f"| 1 | gain | **{mean} ± {1.96 * 50 * ERROR:.2f}†** | **{up} ± {half}†** "
        "| **60.00 ± 0.00** | - |"
    )
    assert lines[7] == "| 2 | base | 55.00 ± 0.00 | 50.00 ± 0.00 | **60.00 ± 0.00** | - |"
    assert lines[8] == f"| - | part | - | 33.33 ± {half}‡ | - | lacks 1 of 2 columns |"


def test_markdown_has_as_many_cells_in_every_row() -> None:
    table = [x for x in made("md", hostile()).splitlines() if x.startswith("|")]
    assert len(table) == 2 + len(HOSTILE)
    assert {line.replace(r"\|", "").count("|") for line in table} == {4}
    assert "<script" not in "".join(table)


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
    assert [name for name in shown if name in HOSTILE] == list(reversed(HOSTILE[:-1]))
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert "url(" not in text
    assert "@import" not in text
    best = next(cell for cell in shown if cell.startswith("70.00"))
    assert best.split() == ["70.00", "±", f"{1.96 * 100 * ERROR:.2f}†"]
    assert reader.tags.count("b") == 1
    assert f"{HOSTILE[-1]}ᵃ" in shown, "a letter stands at the row whose numbers all have the flag"
