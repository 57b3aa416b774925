"""LaTeX: text survives, tables have the shape that booktabs wants, and pdflatex takes them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.sheets import COLUMNS, ERROR, constant, hostile, swinging, view

from leaderboard.render import FORMATS
from leaderboard.render.frame import ScoreFrame, make_frame
from leaderboard.render.latex import escape_latex

ONE, FIVE = COLUMNS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a&b_c%d$e#f", r"a\&b\_c\%d\$e\#f"),
        (r"{\}", r"\{\textbackslash{}\}"),
        ("a--b", "a-{}-b"),
        ("``x''", "`{}`x'{}'"),
        ("é ß 日", "é ß 日"),
        ("[3pt]", "{[}3pt]"),
        ("a\n\nb", "a b"),
    ],
)
def test_escapes_by_hand(text: str, expected: str) -> None:
    assert escape_latex(text) == expected


def table(frame: ScoreFrame) -> list[str]:
    return FORMATS.load("latex")([frame]).splitlines()


def test_numbers_by_hand() -> None:
    entries = {
        "base_line": {ONE: constant(0.5), FIVE: constant(0.6)},
        "up": {ONE: swinging(0.5 + 5 * ERROR), FIVE: constant(0.4)},
    }
    flags = {"base_line": {FIVE: ("subset",)}, "up": {ONE: ("short",)}}
    lines = table(make_frame(view(entries, flags=flags), "base_line"))
    at = lines.index(r"\midrule")
    up, half = f"{50 + 500 * ERROR:.2f}", f"{196 * ERROR:.2f}"
    base = lines[at + 1].removesuffix(r" \\").split(" & ")
    other = lines[at + 2].removesuffix(r" \\").split(" & ")
    assert base[:3] == [
        r"base\_line",
        r"$50.00_{\pm 0.00}$",
        r"$\mathbf{60.00}_{\pm 0.00}^{\mathrm{a}}$",
    ]
    assert other[:3] == [
        "up",
        rf"$\mathbf{{{up}}}_{{\pm {half}}}^{{\dagger\mathrm{{b}}}}$",
        r"$40.00_{\pm 0.00}^{\ddagger}$",
    ]
    assert r" & \multicolumn{2}{c}{EuroSAT} &  \\" in lines
    assert r"\cmidrule(lr){2-3}" in lines
    assert r"model & 5w1s & 5w5s & overall \\" in lines


@pytest.mark.parametrize("columns", [1, 2, 8])
def test_every_row_has_as_many_cells_as_the_head_says(columns: int) -> None:
    names = tuple(f"d{i // 3}:5w{i + 1}s/linear@ibm 64px" for i in range(columns))
    entries = {"a & b": {c: constant(0.5) for c in names}, "c": {names[0]: constant(0.1)}}
    lines = table(make_frame(view(entries, names)))
    spec = next(line for line in lines if line.startswith(r"\begin{tabular}"))
    width = len(spec.partition("}{")[2].removesuffix("}"))
    assert width == 1 + columns + (columns > 1)
    for line in lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]:
        assert len(re.findall(r"(?<!\\)&", line)) == width - 1
    text = "\n".join(lines)
    assert (r"\resizebox" in text) == (width - 1 > 6)
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1


def test_lines_lie_below_the_tasks_of_each_data_set() -> None:
    names = tuple(f"d{i // 3}:5w{i + 1}s/linear@ibm 64px" for i in range(8))
    lines = table(make_frame(view({"a": {c: constant(0.5) for c in names}}, names)))
    assert [line for line in lines if line.startswith(r"\cmidrule")] == [
        r"\cmidrule(lr){2-4}",
        r"\cmidrule(lr){5-7}",
        r"\cmidrule(lr){8-9}",
    ]


def test_columns_come_in_the_order_of_the_papers_under_their_names() -> None:
    names = ("chestx", "cropdisease", "eurosat", "isic", "mine")
    columns = tuple(f"{n}:5w{k}s/linear@ibm 64px" for n in names for k in (1, 5))
    entries = {"a": {c: constant(0.1 * i) for i, c in enumerate(columns)}, "b": {}}
    lines = table(make_frame(view(entries, columns)))
    head = next(line for line in lines if r"\multicolumn" in line)
    order = ["ChestX", "ISIC", "EuroSAT", "CropDisease", "mine"]
    assert re.findall(r"\{c\}\{(\w+)\}", head) == order
    row = next(line for line in lines if line.startswith("a & "))
    means = re.findall(r"\$(?:\\mathbf\{)?(\d+\.\d\d)", row)
    assert means[:10:2] == ["0.00", "60.00", "40.00", "20.00", "80.00"]


def test_one_model_has_nothing_in_bold_and_no_rule_about_it() -> None:
    alone, two = {"a": {ONE: constant(0.5)}}, {"a": {ONE: constant(0.5)}, "b": {ONE: constant(0.4)}}
    for shape, bold in (("latex", r"\mathbf"), ("md", "**"), ("html", "<b>")):
        texts = [
            FORMATS.load(shape)([make_frame(view(entries, (ONE,)))]) for entries in (alone, two)
        ]
        assert [bold in text for text in texts] == [False, True], shape
        assert ["the best of a column" in text for text in texts] == [False, True]


def test_the_caption_has_two_sentences_and_the_rules_are_a_footnote() -> None:
    entries = {"a": {ONE: constant(0.5)}, "b": {ONE: constant(0.4)}}
    lines = table(make_frame(view(entries, (ONE,))))
    caption = next(line for line in lines if line.startswith(r"\caption"))
    assert caption == (
        r"\caption{5-way 1-shot; linear; protocol ibm; 64 px; on EuroSAT. Accuracy in percent with "
        r"95 \% intervals; bold: the best of a column and its ties.}"
    )
    note = next(line for line in lines if r"\footnotesize" in line)
    assert "1.96 s / sqrt(n)" in note
    assert "p adjusted for all pairs" in note
    assert lines.index(note) > lines.index(r"\end{tabular}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdflatex_takes_hostile_names(tmp_path: Path) -> None:
    everything = "".join(chr(i) for i in range(32, 0x180)) + "−±×†‡ ff fi -- ``''"
    entries = {
        everything: {ONE: constant(0.5), FIVE: constant(0.6)},
        "[1pt] *": {ONE: constant(0.1)},
    }
    body = FORMATS.load("latex")([hostile(), make_frame(view(entries), everything)])
    document = (
        r"\documentclass{article}\usepackage{booktabs}\begin{document}"
        f"\n{body}\n"
        r"\end{document}"
    )
    (tmp_path / "paper.tex").write_text(document, encoding="utf8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 1000
