"""What every chart keeps: well-formed, escaped, readable, the same for the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.charts import bars, critical, gaps, heat_map, histogram, pareto, scatter, shots
from leaderboard.charts._labels import Box
from leaderboard.charts._svg import SMALL, clean, extent, fitted, number, signed

SVG = "{http://www.w3.org/2000/svg}"
NAMES = (
    "pilot-seal-s0", "<script>alert(1)</script>",
    '"&\x00\x1b\ud800\u202e', "日本語のモデルの名前です",
    "a-name-that-is-much-too-long-for-any-phone-and-for-most-desks-too-s0", "$x_1$", "normal", "",
)  # fmt: skip
TASKS = tuple(
    f"{d}:5w{k}s" for d in ("chestx", "isic", "eurosat", "cropdisease") for k in (1, 5, 20)
)


def rows(shift: float) -> tuple[tuple[float | None, ...], ...]:
    return tuple(
        tuple(None if i == j else 0.004 * (i - j) + shift for j in range(len(TASKS)))
        for i in range(len(NAMES))
    )


def a_heat_map(name: str, width: float) -> str:
    chart = heat_map.HeatMap("<b>", NAMES, TASKS, rows(0), rows(-0.008), rows(0.008))
    return heat_map.draw(chart, name, width)


def some_shots(name: str, width: float) -> str:
    curves = tuple(
        shots.Curve(n, (1, 5, 20, 50), tuple(m := [0.4 + 0.01 * i, 0.5, 0.6, 0.65]), *ends(m))
        for i, n in enumerate(NAMES)
    )
    return shots.draw(shots.Shots("<b>", curves), name, width)


def ends(means: list[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(m - 0.01 for m in means), tuple(m + 0.01 for m in means)


def a_pareto(name: str, width: float) -> str:
    points = tuple(
        pareto.Point(n, 10.0 ** (i % 5 + 2), 0.4 + 0.03 * i, 0.39 + 0.03 * i, 0.41 + 0.03 * i)
        for i, n in enumerate(NAMES)
    )
    return pareto.draw(pareto.Pareto("<b>", "optimizer steps <i>", points), name, width)


def some_gaps(name: str, width: float) -> str:
    found = tuple(
        gaps.Gap(t, 0.01 * (i - 6), 0.01 * (i - 7), 0.01 * (i - 5)) for i, t in enumerate(TASKS)
    )
    return gaps.draw(gaps.Gaps("<b>", NAMES[4], NAMES[1], found), name, width)


def a_histogram(name: str, width: float) -> str:
    values = tuple((i % 76) / 75 for i in range(600))
    return histogram.draw(histogram.Histogram("<b>", values, 0.2), name, width)


def a_critical(name: str, width: float) -> str:
    pytest.importorskip("scikit_posthocs", reason="the report extra is not installed")
    near = tuple(tuple(1.0 if abs(i - j) < 2 else 0.01 for j in range(8)) for i in range(8))
    ranks = (1.2, 2.1, 3.3, 4.2, 5.0, 5.9, 6.8, 7.5)
    drawn = critical.draw(critical.Critical("<b>", NAMES, ranks, near), name, width)
    assert drawn is not None
    return drawn


def a_scatter(name: str, width: float) -> str:
    dots = tuple(
        scatter.Dot(n, 0.2 + 0.01 * i, 0.4 - 0.03 * i, 0.39 - 0.03 * i, 0.41 - 0.03 * i, i % 2 == 0)
        for i, n in enumerate(NAMES)
    )
    chart = scatter.Scatter("<b>", "in-domain <i> (%)", "gain (points)", dots, level=0.3, even=True)
    return scatter.draw(chart, name, width)


def some_bars(name: str, width: float) -> str:
    found = tuple(
        bars.Bar(n, (10.0**i, None if i == 3 else 7.0 * i + 1)) for i, n in enumerate(NAMES)
    )
    chart = bars.Bars("<b>", "episodes <i>", ("one", NAMES[1]), found, log=True, marked=600.0)
    return bars.draw(chart, name, width)


CHARTS = [
    a_heat_map, some_shots, a_pareto, some_gaps, a_histogram, a_critical, a_scatter, some_bars,
]  # fmt: skip
every = pytest.mark.parametrize("draw", CHARTS, ids=lambda draw: draw.__name__)
widths = pytest.mark.parametrize("width", [358, 720, 1248])
Draw = Callable[[str, float], str]


def parsed(text: str) -> Element:
    return ElementTree.fromstring(text)


@every
def test_well_formed_named_and_described(draw: Draw) -> None:
    root = parsed(draw("one", 358))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    labels = [root.find(f"*[@id='{key}']") for key in str(root.get("aria-labelledby")).split()]
    assert [label.tag for label in labels if label is not None] == [f"{SVG}title", f"{SVG}desc"]
    assert [bool(label.text) for label in labels if label is not None] == [True, True]
    assert root.findtext(f"{SVG}title") == "<b>"


@every
def test_names_are_text_and_nothing_else(draw: Draw) -> None:
    text = draw("one", 1248)
    tags = {element.tag.removeprefix(SVG) for element in parsed(text).iter()}
    drawn = {"rect", "line", "circle", "text", "path", "polygon", "polyline", "g", "use", "defs"}
    assert tags <= {"svg", "title", "desc", "clipPath", *drawn}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\u202a-\u202e]", text)
    attributes = {key for element in parsed(text).iter() for key in element.attrib}
    assert not [key for key in attributes if key.lower().startswith("on")]


@every
def test_ids_are_those_of_the_chart_alone(draw: Draw) -> None:
    texts = [draw(name, 720) for name in ("one", "two")]
    found = [[i for e in parsed(text).iter() if (i := e.get("id"))] for text in texts]
    assert all(len(set(ids)) == len(ids) for ids in found)
    assert not set(found[0]) & set(found[1])
    for text, ids in zip(texts, found, strict=True):
        used = re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", text)
        assert {a or b for a, b in used} <= set(ids)


@every
def test_same_numbers_same_bytes(draw: Draw) -> None:
    assert draw("one", 720) == draw("one", 720)


@every
def test_colours_are_those_of_the_page(draw: Draw) -> None:
    text = draw("one", 720)
    assert not re.search(r"(fill|stroke)[=:] ?\"?(#|black|white)", text)
    assert "<style" not in text
    for element in parsed(text).iter(f"{SVG}text"):
        assert element.get("fill") == "currentColor"


@every
@widths
def test_no_text_is_small_leaves_the_picture_or_meets_another(draw: Draw, width: float) -> None:
    root = parsed(draw("one", width))
    wide, high = (float(str(root.get(side))) for side in ("width", "height"))
    boxes = [box(element) for element in root.iter(f"{SVG}text") if (element.text or "").strip()]
    assert boxes
    for found in boxes:
        assert found.left >= -1
        assert found.top >= -1
        assert found.right <= wide + 1
        assert found.bottom <= high + 1
    for a, b in combinations(boxes, 2):
        assert not a.meets(b), (a, b)


def box(element: Element) -> Box:
    """What a text takes at most; the height is that of its letters, not of the line."""
    style = str(element.get("style"))
    size = float(
        element.get("font-size") or (re.findall(r"font-size: ([\d.]+)px", style) or [12])[0]
    )
    assert size >= 11
    anchor = (
        element.get("text-anchor") or (re.findall(r"text-anchor: (\w+)", style) or ["start"])[0]
    )
    x, y = (float(str(element.get(key))) for key in "xy")
    x += float(element.get("dx") or 0)
    wide = extent(element.text or "", size)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    if (element.get("transform") or "").startswith("rotate(-90"):
        return Box(x - 0.75 * size, y - wide, x, y)
    return Box(left, y - 0.75 * size, left + wide, y)


@given(st.text(), st.floats(20, 300))
def test_fitted_text_fits(text: str, room: float) -> None:
    shown = fitted(text, room)
    assert extent(shown) <= room
    assert shown == clean(text) or shown.endswith("…")


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1"), (0.125, "0.12"), (-0.001, "0"), (12.5, "12.5"), (100.0, "100")]
)
def test_numbers_are_short(value: float, shown: str) -> None:
    assert number(value) == shown


def test_gaps_have_a_sign_unless_they_are_nothing() -> None:
    assert [signed(v) for v in (0.0123, -0.005, 0.0, -0.00001)] == [
        "+1.23",
        "−0.50",
        "0.00",
        "0.00",
    ]


def test_small_text_is_what_the_rule_says() -> None:
    assert SMALL == 11


def test_a_gap_is_coloured_by_its_interval_or_by_what_is_said_of_it() -> None:
    sides = [
        gaps.Gap("", 0.1, 0.05, 0.15),
        gaps.Gap("", -0.1, -0.2, 0.1),
        gaps.Gap("", 0.1, None, None),
    ]
    assert [gap.side for gap in sides] == [1, 0, 0]
    told = [gaps.Gap("", 0.1, 0.05, 0.15, sure=False), gaps.Gap("", -0.1, -0.2, 0.1, sure=True)]
    assert [gap.side for gap in told] == [0, -1]


def test_a_level_and_a_diagonal_are_lines_and_surely_other_points_are_coloured() -> None:
    dots = (scatter.Dot("up", 0.2, 0.3, sure=True), scatter.Dot("down", 0.3, 0.1, sure=True))
    open_ = scatter.Dot("open", 0.25, 0.2)
    plain = scatter.Scatter("t", "x", "y", (*dots, open_))
    lined = scatter.Scatter("t", "x", "y", (*dots, open_), level=0.2, even=True)
    dashed = [scatter.draw(c, "n").count("stroke-dasharray") for c in (plain, lined)]
    assert dashed == [0, 2]
    drawn = list(parsed(scatter.draw(lined, "n")).iter(f"{SVG}circle"))
    assert [str(e.get("style"))[:22] for e in drawn] == [
        "fill:var(--chart-gain,", "fill:var(--chart-loss,", "fill:none;stroke:curre",
    ]  # fmt: skip


def test_bars_are_as_long_as_their_numbers() -> None:
    chart = bars.Bars(
        "t", "points", ("a", "b"), (bars.Bar("x", (1.0, 2.0)), bars.Bar("y", (4.0, None)))
    )
    long = [float(str(e.get("width"))) for e in parsed(bars.draw(chart, "n")).iter(f"{SVG}rect")]
    assert len(long) == 3
    assert long[1] == pytest.approx(2 * long[0], abs=0.02)
    assert long[2] == pytest.approx(4 * long[0], abs=0.04)
