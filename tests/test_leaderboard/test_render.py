"""Every format: golden files, hostile names stay names, and what was written reads back."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fakes
from support import site as fakes_site
from support.cases import GOLDEN, read_cases
from support.pages import Elements
from support.sheets import COLUMNS, ERROR, HOSTILE, constant, hostile, swinging, view

from fsbench.api.leaderboard import RankedBoard
from fsbench.core.schema import Result
from fsbench.results.table import combine_costs, shorten_columns
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.render import FORMATS
from leaderboard.render.csv import guard_formula
from leaderboard.render.frame import ScoreFrame, make_frame
from leaderboard.render.latex import escape_latex
from leaderboard.render.md import escape_markdown
from leaderboard.render.terminal import make_published_tables, make_score_table
from leaderboard.tables import BoardTable

ONE, FIVE = COLUMNS
NAMES = FORMATS.names()


def make(shape: str, *frames: ScoreFrame) -> str:
    return FORMATS.load(shape)(frames)


def paper() -> ScoreFrame:
    """Three data sets, entries above and below the control, one without a column, one incomparable.

    Flags are on a row, on a column and on one number.
    """
    chestx, crop, crop5, eurosat = columns = tuple(
        f"{task}/linear@ibm 64px"
        for task in ("chestx:5w1s", "cropdisease:5w1s", "cropdisease:5w5s", "eurosat:5w1s")
    )
    entries = {
        "base_line": dict(zip(columns, map(constant, (0.2, 0.5, 0.6, 0.7)), strict=True)),
        "gain": {chestx: swinging(0.2 + 5 * ERROR), crop: swinging(0.5 - ERROR),
                 crop5: constant(0.4), eurosat: constant(0.9)},
        "part": {chestx: swinging(1 / 3), eurosat: constant(0.1)},
        "once": {c: Outcomes(np.arange(1), np.array([0.5]), "draws") for c in columns},
    }  # fmt: skip
    flags = {name: {eurosat: ("derived",)} for name in entries}
    flags["gain"] |= {chestx: ("short",)}
    flags["once"] = {column: (*flags["once"].get(column, ()), "subset") for column in columns}
    sources = dict.fromkeys(entries, 0.5)
    return make_frame(view(entries, columns, flags, sources, notes=("a note",)), "base_line")


def board() -> BoardTable:
    """A table beside which published numbers are shown."""
    columns = ("eurosat:5w1s/linear@ibm 224px", "eurosat:5w5s/linear@ibm 224px")
    entries = {
        name: dict(zip(columns, map(swinging, means), strict=False))
        for name, means in (
            ("seal", (0.5775, 0.7461)),
            ("twin", (0.5775, 0.7461)),
            ("normal", (0.5340, 0.7174)),
            ("half", (0.9,)),
        )
    }
    entries["single"] = {c: Outcomes(np.arange(1), np.array([0.1]), "draws") for c in columns}
    flags = {"half": {columns[0]: ("saw eurosat",)}}
    shown = {"name": "cdfsl", "official": True, "track": None}
    return view(entries, columns, flags, {"seal": 0.5922}, **shown)


@pytest.mark.parametrize("file", ["board.md", "report.latex", "report.md"])
def test_golden_files(file: str) -> None:
    """Refresh on purpose: REFRESH=1 pytest tests/test_leaderboard/test_render.py"""
    path = GOLDEN / file
    is_board = path.stem == "board"
    text = RankedBoard((board(),)).to_markdown() if is_board else make(path.suffix[1:], paper())
    if os.environ.get("REFRESH"):
        path.write_text(text, encoding="utf8")
    assert text == path.read_text(encoding="utf8")


@pytest.mark.parametrize("shape", NAMES)
def test_every_format_makes_any_frame(shape: str) -> None:
    for frames in ((), (hostile(),), (paper(), hostile()), (make_frame(view({}, ())),)):
        text = make(shape, *frames)
        assert text == make(shape, *frames), "same input, same bytes"
        assert "nan" not in text.replace("nance", "")
        assert "None" not in text


def test_csv_and_json_hold_the_numbers_of_the_frame() -> None:
    frame = paper()
    text = make("csv", frame)
    expected = pandas.DataFrame(frame.records()).assign(flags=lambda f: f["flags"].str.join(", "))
    read = pandas.read_csv(io.StringIO(text, newline=""))
    expected = expected.mask(expected == "")
    pandas.testing.assert_frame_equal(read, expected, check_dtype=False)
    assert len(read) == text.count("\r\n") - 1 == text.count("\n") - 1
    rows = csv.DictReader(io.StringIO(make("csv", hostile()), newline=""))
    assert {row["entry"] for row in rows} == {"'=1+1", *HOSTILE[1:]}
    (content,) = json.loads(make("json", frame))
    names = [column["name"] for column in content["columns"]]
    assert tuple(names) == frame.table.ranking.columns
    for entry in content["entries"]:
        by_column = frame.scores[entry["name"]]
        scores = [by_column.get(name) for name in names]
        assert entry["mean"] == [score and score.mean for score in scores]
        assert entry["n"] == [score and score.n for score in scores]
        assert entry["best"] == [i for i, s in enumerate(scores) if s and frame.is_best(s)]
        over = entry["over_control"].items()
        gaps = {name: (gap["gap"], gap["p_adjusted"]) for name, gap in over}
        assert gaps == {name: (s.gap, s.p) for name, s in by_column.items() if s.control}
    by_name = {entry["name"]: entry for entry in content["entries"]}
    assert by_name["part"]["missing"] == names[1:3]
    assert by_name["part"]["reason"] == "lacks 2 of 4 columns"
    assert by_name["once"]["ci95"] == [None] * 4
    (content,) = RankedBoard((board(),)).to_json()
    behind = {entry["name"]: entry["behind_leader"] for entry in content["entries"]}
    assert behind["seal"] is None
    assert behind["twin"]["p_adjusted"] == 1.0
    assert [entry["name"] for entry in content["published"]] == [e.name for e in board().published]


@given(st.text())
def test_guarded_text_is_no_formula_and_loses_nothing(text: str) -> None:
    shown = guard_formula(text)
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert shown in {text, "'" + text}


@pytest.mark.parametrize("escape", [escape_markdown, escape_latex])
def test_text_is_shown_as_it_is(escape: Callable[[str], str]) -> None:
    expected = read_cases("pages")["escaped"][escape.__name__]
    assert {text: escape(text) for text in expected} == expected


def test_markdown_has_as_many_columns_in_every_row() -> None:
    table = [x for x in make("md", hostile()).splitlines() if x.startswith("|")]
    assert len(table) == 2 + len(HOSTILE)
    assert {line.replace(r"\|", "").count("|") for line in table} == {5}
    assert "<script" not in "".join(table)


def test_html_shows_names_as_they_are_and_loads_nothing() -> None:
    text = make("html", hostile())
    elements = Elements(text).all
    shown = [element.text.strip() for element in elements]
    assert [name for name in shown if name in HOSTILE] == list(reversed(HOSTILE[:-1]))
    assert not {"script", "link"} & {element.tag for element in elements}
    assert "url(" not in text
    assert "@import" not in text
    (best,) = (element.text.split() for element in elements if element.tag == "b")
    assert best == ["70.00", "±", f"{1.96 * 100 * ERROR:.2f}†"]
    assert f"{HOSTILE[-1]}ᵃ" in shown, "a letter stands at the row whose numbers all have the flag"


@pytest.mark.parametrize("columns", [1, 2, 8])
def test_every_row_of_latex_has_as_many_columns_as_the_head_says(columns: int) -> None:
    names = tuple(f"d{i // 3}:5w{i + 1}s/linear@ibm 64px" for i in range(columns))
    entries = {"a & b": {c: constant(0.5) for c in names}, "c": {names[0]: constant(0.1)}}
    text = make("latex", make_frame(view(entries, names)))
    lines = text.splitlines()
    spec = next(line for line in lines if line.startswith(r"\begin{tabular}"))
    width = len(spec.partition("}{")[2].removesuffix("}"))
    assert width == 1 + columns + (columns > 1)
    for line in lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]:
        assert len(re.findall(r"(?<!\\)&", line)) == width - 1
    is_wide = width - 1 > 3
    assert (r"\resizebox" in text) == is_wide
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    for name in ("table*" if is_wide else "table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdflatex_takes_hostile_names(tmp_path: Path) -> None:
    shown = (c for i in range(33, 0x100) if (c := chr(i)).isprintable())
    everything = "".join(shown) + "−±×†‡ ff fi -- ``''"
    entries = {
        everything: {ONE: constant(0.5), FIVE: constant(0.6)},
        "[1pt] *": {ONE: constant(0.1)},
    }
    body = make("latex", hostile(), paper(), make_frame(view(entries), everything))
    body = re.sub("[\u0100-\uffff]", "?", body)  # other scripts need another engine
    head = r"\documentclass[twocolumn]{article}\usepackage[T1]{fontenc}\usepackage{booktabs}"
    head += r"\usepackage{graphicx}\begin{document}"
    document = f"{head}\n{body}\n\\end{{document}}"
    (tmp_path / "paper.tex").write_text(document, encoding="utf8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 1000


@pytest.mark.parametrize(("shape", "bold"), [("latex", r"\mathbf"), ("md", "**"), ("html", "<b>")])
def test_one_model_has_nothing_in_bold_and_no_rule_about_it(shape: str, bold: str) -> None:
    entries = {"a": {ONE: constant(0.5)}, "b": {ONE: constant(0.4)}}
    for n in (1, 2):
        frame = make_frame(view(dict([*entries.items()][:n]), (ONE,)))
        text = make(shape, frame)
        assert (bold in text) == ("the best of a column" in text) == (n > 1)


def test_the_terminal_shows_a_data_set_as_the_mean_of_its_columns() -> None:
    table = make_score_table(make_frame(board()))
    assert table.title == table.complete.title == "cdfsl: linear@ibm 224px"
    assert table.columns == ("tier", "entry", "overall", "eurosat", "source", "notes")
    rows = {row[1]: row for row in table.rows}
    assert rows["seal"][:4] == ("1", "seal", *[f"66.18 ± {196 * ERROR:.2f}"] * 2)
    assert rows["halfᵃ"][2:4] == ("-", "-")


def test_costs_stand_in_complete_tables_and_name_their_machine() -> None:
    (table,) = fakes_site.source(["a", "b"]).tables
    shown = make_score_table(make_frame(table))
    assert not {"parameters (M)", "GMACs", "measured"} & {*shown.columns}
    whole = shown.complete.select(["parameters (M)", "GMACs", "measured"])
    cost = ("1e-05", "1.81", "90.5 images/s, 716 MiB (AMD EPYC 7763, 2 threads)")
    assert {row[2:] for row in whole.rows} == {cost}
    numbers = RankedBoard((table,)).to_frame()
    assert {*zip(numbers.macs, numbers.machine, strict=True)} == {(1814073344, cost[2][-25:-1])}
    (content,) = RankedBoard((table,)).to_json()
    assert content["entries"][0]["cost"] == fakes_site.COST


def test_speeds_of_several_machines_are_never_mixed() -> None:
    (table,) = fakes_site.source(["a"]).tables
    (made, *_) = [result for (result,) in table.rows["a"].results.values()]
    cost = made.provenance.cost
    assert cost is not None

    def measure(**changes: object) -> Result:
        changed = made.provenance.model_copy(update={"cost": cost.model_copy(update=changes)})
        return made.model_copy(update={"provenance": changed})

    slow = measure(images_per_second=70.5, peak_memory_bytes=2**30)
    other = measure(machine="another", images_per_second=9e9, peak_memory_bytes=2**40)
    expected = cost.model_copy(update={"images_per_second": 80.5, "peak_memory_bytes": 2**30})
    assert combine_costs([other, made, slow]) == expected
    assert combine_costs([made.model_copy(update={"provenance": fakes.provenance()})]) is None


def test_published_numbers_stand_once_below_all_tracks() -> None:
    text = RankedBoard((board(), board())).to_markdown()
    assert text.count("### published") == 1
    assert text.rindex("| tier |") < text.index("### published")
    (table,) = make_published_tables([board(), board()])
    assert len({row[:2] for row in table.rows}) == len(table.rows)


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
        ("a:5w1s/linear@ibm 32px", "a:5w1s/linear@ibm 32px", ""),
        ("a:probe 32px; a:5w1s/linear@ibm 32px", "a:probe; a:5w1s", "linear@ibm 32px"),
        ("a:5w1s/linear@ibm 32px; a:probe 64px", "a:5w1s 32px; a:probe 64px", "linear@ibm"),
        ("a:5w1s/linear@ibm 8px; a:knn 8px; a:5w1s/affine@ibm 8px",
         "a:5w1s/linear@ibm; a:knn; a:5w1s/affine@ibm", "8px"),
    ],
)  # fmt: skip
def test_what_all_columns_share_is_said_once(columns: str, labels: str, common: str) -> None:
    assert shorten_columns(columns.split("; ")) == (labels.split("; "), common)
