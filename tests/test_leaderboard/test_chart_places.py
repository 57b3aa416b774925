"""Marks of every chart stand where the numbers say, by hand."""

from __future__ import annotations

import math
import sys
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.charts import critical, gaps, heat_map, histogram, pareto, shots
from leaderboard.charts._axes import Scale, log_ticks, padded, round_ticks, short_number

SVG = "{http://www.w3.org/2000/svg}"


def elements(text: str, tag: str) -> list[Element]:
    return list(ElementTree.fromstring(text).iter(SVG + tag))


def values(element: Element, *keys: str) -> tuple[float, ...]:
    return tuple(float(element.attrib[key]) for key in keys)


def hinted(text: str, tag: str) -> dict[str, Element]:
    """Marks by what a pointer over them shows."""
    return {str(e.findtext(f"{SVG}title")): e for e in elements(text, tag)}


def test_scales_by_hand() -> None:
    assert Scale(0, 10, 100, 200)(2.5) == 125
    assert Scale(0, 1, 200, 100)(0.25) == 175
    assert Scale(1, 100, 0, 50, log=True)(10) == pytest.approx(25)
    assert padded([2.0, 3.0]) == (pytest.approx(1.94), pytest.approx(3.06))
    assert padded([0.5, 0.5]) == (pytest.approx(0.4944), pytest.approx(0.5056))
    low, high = padded([1.0, 100.0], log=True)
    assert (low, high) == (pytest.approx(100**-0.06), pytest.approx(100**1.06))


def test_ticks_are_round() -> None:
    assert round_ticks(0.0, 10.0) == [0, 2, 4, 6, 8, 10]
    assert round_ticks(0.412, 0.583) == pytest.approx([0.45, 0.5, 0.55])
    assert log_ticks(900, 21_000) == [1000, 2000, 5000, 10_000, 20_000]
    assert log_ticks(1, 5000) == [1, 10, 100, 1000]
    shown = [short_number(v) for v in (0.25, 500, 20_000, 1.5e6, 3e9, 2e15)]
    assert shown == ["0.25", "500", "20k", "1.5M", "3G", "2e+15"]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_lie_inside_and_are_few(low: float, span: float) -> None:
    found = round_ticks(low, low + span)
    assert len(found) <= 7
    slack = span * 1e-6 + abs(low) * 1e-9
    assert all(low - slack <= at <= low + span + slack for at in found)


def heat() -> heat_map.HeatMap:
    return heat_map.HeatMap(
        "gain",
        ("a", "b"),
        ("x", "y", "z"),
        ((0.02, -0.01, None), (0.0, 0.005, -0.04)),
        ((0.01, -0.02, None), (-0.01, 0.0, -0.05)),
        ((0.03, 0.01, None), (0.01, 0.01, -0.03)),
    )


def test_heat_map_cells_by_hand() -> None:
    text = heat_map.draw(heat(), "h", 300)
    cells = hinted(text, "rect")
    gain = cells["a, x: +2.00 points, 95 % interval 1.00 to 3.00"]
    loss = cells["b, z: −4.00 points, 95 % interval -5.00 to -3.00"]
    # Label "a" is 0.65 * 12 wide and has 10 px of room: cells begin at 17.8 and are 84 wide.
    assert values(gain, "x", "y", "width", "height") == (18.3, 20.5, 83, 25)
    assert values(loss, "x", "y") == (17.8 + 168 + 0.5, 46.5)
    assert float(gain.attrib["fill-opacity"]) == pytest.approx(0.62 / 2)
    assert float(loss.attrib["fill-opacity"]) == pytest.approx(0.62)
    assert "gain" in gain.attrib["style"]
    assert "loss" in loss.attrib["style"]
    assert len(cells) - 1 == 5, "five measured cells, and rects without a hint"


def test_heat_map_marks_only_intervals_without_zero() -> None:
    text = heat_map.draw(heat(), "h", 300)
    dots = [values(e, "cx", "cy") for e in elements(text, "circle")][:-1]  # the last explains them
    assert dots == [(17.8 + 84 - 5, 26.0), (17.8 + 252 - 5, 52.0)]
    assert "excludes 0 in 2 cells" in text
    shown = [e.text for e in elements(text, "text")]
    assert [t for t in shown if t in {"+2.00", "−1.00", "0.00", "+0.50", "−4.00"}] == [
        "+2.00", "−1.00", "0.00", "+0.50", "−4.00"
    ]  # fmt: skip


def test_heat_map_of_many_columns_grows_and_shows_no_numbers() -> None:
    n = 60
    many = heat_map.HeatMap("g", ("a",), ("c",) * n, ((0.01,) * n,), ((0.0,) * n,), ((0.02,) * n,))
    root = ElementTree.fromstring(heat_map.draw(many, "h", 358))
    assert float(root.attrib["width"]) == pytest.approx(17.8 + 16 * n + 1)
    assert "+1.00" not in [e.text for e in root.iter(f"{SVG}text")]


def test_shots_stand_on_a_log_axis() -> None:
    curve = shots.Curve("a", (1, 4, 16), (0.4, 0.5, 0.6), (0.38, 0.48, 0.58), (0.42, 0.52, 0.62))
    text = shots.draw(shots.Shots("s", (curve,)), "s", 400)
    first, middle, last = (values(e, "cx", "cy") for e in elements(text, "circle"))
    assert middle[0] == pytest.approx((first[0] + last[0]) / 2, abs=0.02)
    assert middle[1] == pytest.approx((first[1] + last[1]) / 2, abs=0.02)
    # 0.38..0.62 with 6 % of room on both sides, on the pixels 260 (bottom) to 24 (top).
    assert first[1] == pytest.approx(260 - 236 * (0.4 - 0.3656) / 0.2688, abs=0.01)
    (band,) = elements(text, "polygon")
    corners = [tuple(map(float, p.split(","))) for p in band.attrib["points"].split()]
    assert [x for x, _ in corners] == [first[0], middle[0], last[0], last[0], middle[0], first[0]]
    assert corners[0][1] == pytest.approx(260 - 236 * (0.42 - 0.3656) / 0.2688, abs=0.01)
    assert corners[-1][1] == pytest.approx(260 - 236 * (0.38 - 0.3656) / 0.2688, abs=0.01)
    assert "a, 4 shots: 50.00 %, 95 % interval 48.00 to 52.00" in hinted(text, "circle")


def test_curves_without_intervals_have_no_band_and_all_have_a_line() -> None:
    curves = tuple(shots.Curve(f"c{i}", (1, 5), (0.4, 0.5)) for i in range(20))
    text = shots.draw(shots.Shots("s", curves), "s", 400)
    assert not elements(text, "polygon")
    looks = {(e.attrib["style"], e.get("stroke-dasharray")) for e in elements(text, "polyline")}
    assert len(looks) == 20, "twenty curves, none like another"


POINTS = (
    pareto.Point("cheap", 100, 0.4),
    pareto.Point("beaten", 1000, 0.39),
    pareto.Point("best", 10_000, 0.6),
    pareto.Point("middle", 1000, 0.5),
    pareto.Point("dear", 20_000, 0.6),
)


def test_the_front_by_hand() -> None:
    assert [p.label for p in pareto.front(POINTS)] == ["cheap", "middle", "best"]
    twins = (*POINTS, pareto.Point("twin", 1000, 0.5))
    assert [p.label for p in pareto.front(twins)] == ["cheap", "middle", "twin", "best"]
    assert pareto.front(()) == []


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=12))
def test_the_front_is_what_nothing_beats(pairs: list[tuple[int, int]]) -> None:
    points = [pareto.Point(str(i), c, a / 10) for i, (c, a) in enumerate(pairs)]

    def beaten(p: pareto.Point) -> bool:
        return any(
            q.cost <= p.cost
            and q.accuracy >= p.accuracy
            and (q.cost, q.accuracy) != (p.cost, p.accuracy)
            for q in points
        )

    expected = {p.label for p in points if not beaten(p)}
    assert {p.label for p in pareto.front(points)} == expected


def test_pareto_points_and_stair() -> None:
    text = pareto.draw(pareto.Pareto("p", "steps", POINTS), "p", 500)
    at = {k.split(":")[0]: values(e, "cx", "cy") for k, e in hinted(text, "circle").items()}
    assert at["middle"][0] == pytest.approx((at["cheap"][0] + at["best"][0]) / 2, abs=0.02)
    assert at["cheap"][1] > at["middle"][1] > at["best"][1] == at["dear"][1]
    (stair,) = elements(text, "polyline")
    corners = [tuple(map(float, p.split(","))) for p in stair.attrib["points"].split()]
    assert corners == [
        at["cheap"],
        (at["middle"][0], at["cheap"][1]),
        at["middle"],
        (at["best"][0], at["middle"][1]),
        at["best"],
        (488.0, at["best"][1]),
    ]
    assert {"cheap", "middle", "best"} <= {e.text for e in elements(text, "text")}


def test_gaps_by_hand() -> None:
    chart = gaps.Gaps(
        "g",
        "A",
        "B",
        (
            gaps.Gap("up", 0.02, 0.01, 0.03),
            gaps.Gap("even", 0.0, -0.01, 0.01),
            gaps.Gap("down", -0.02, -0.03, -0.01),
            gaps.Gap("unknown", 0.01, None, None),
        ),
    )
    text = gaps.draw(chart, "g", 400)
    dots = [values(e, "cx", "cy") for e in elements(text, "circle")]
    zero = next(e for e in elements(text, "line") if e.get("stroke-dasharray"))
    assert dots[1][0] == float(zero.attrib["x1"])
    assert dots[0][0] - dots[1][0] == pytest.approx(dots[1][0] - dots[2][0], abs=0.02)
    assert [y for _, y in dots] == [40, 64, 88, 112]
    bars = [e for e in elements(text, "line") if "stroke-width" in e.attrib]
    assert ["gain" in e.attrib["style"] for e in bars] == [True, False, False]
    assert ["loss" in e.attrib["style"] for e in bars] == [False, False, True]
    left, right = values(bars[0], "x1", "x2")
    assert (left + right) / 2 == pytest.approx(dots[0][0], abs=0.02)
    assert right - left == pytest.approx(dots[0][0] - dots[1][0], abs=0.02), (
        "0.02 wide, 0.02 from 0"
    )
    assert "above 0 in 1 and below it in 1" in text


def test_histogram_by_hand() -> None:
    chart = histogram.Histogram("h", (0.0, 0.5, 0.5, 0.51, 1.0), 0.2)
    text = histogram.draw(chart, "h", 324)
    bars = hinted(text, "rect")
    assert set(bars) == {
        "0 to 4 %: 1 episodes", "48 to 52 %: 3 episodes", "96 to 100 %: 1 episodes"
    }  # fmt: skip
    # Plot from 8 to 308: 300 px, 12 a bar; the highest bar fills 190 - 34 = 156 px.
    middle = values(bars["48 to 52 %: 3 episodes"], "x", "y", "width", "height")
    assert middle == (8 + 12 * 12 + 0.5, 34, 11, 156)
    assert values(bars["0 to 4 %: 1 episodes"], "y", "height") == (190 - 52, 52)
    upright = [e for e in elements(text, "line") if e.get("stroke-width") == "1.5"]
    assert [values(e, "x1")[0] for e in upright] == [8 + 60, pytest.approx(8 + 300 * 0.502)]
    assert "no episodes" in histogram.draw(histogram.Histogram("h", ()), "h")


def test_critical_difference_joins_what_is_not_separated() -> None:
    pytest.importorskip("scikit_posthocs", reason="the report extra is not installed")
    p = ((1.0, 0.5, 0.01), (0.5, 1.0, 0.2), (0.01, 0.2, 1.0))
    chart = critical.Critical("c", ("a", "b", "c"), (1.0, 2.0, 3.0), p)
    text = critical.draw(chart, "c", 720)
    assert text is not None
    shown = [e.text for e in elements(text, "text")]
    assert {"a 1.00", "b 2.00", "c 3.00"} <= set(shown)
    assert "a 1.00, b 2.00, c 3.00" in text
    bars = [e for e in elements(text, "path") if "stroke-width: 2;" in e.attrib.get("style", "")]
    assert len(bars) == 2, "a-b and b-c, never a-c"
    assert "1f77b4" not in text
    alone = critical.Critical("c", ("a", "b"), (1.0, 2.0), ((1.0, 0.01), (0.01, 1.0)))
    drawn = critical.draw(alone, "c", 720)
    assert drawn is not None
    assert "stroke-width: 2;" not in drawn


def test_critical_difference_is_none_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    monkeypatch.setattr(critical, "find_spec", lambda name: None)
    assert not critical.available()
    assert critical.draw(critical.Critical("c", ("a",), (1.0,), ((1.0,),)), "c") is None


def test_empty_charts_are_drawn() -> None:
    empty = [
        heat_map.draw(heat_map.HeatMap("t", (), (), (), (), ()), "x"),
        shots.draw(shots.Shots("t", ()), "x"),
        pareto.draw(pareto.Pareto("t", "steps", ()), "x"),
        gaps.draw(gaps.Gaps("t", "a", "b", ()), "x"),
    ]
    for text in empty:
        assert not math.isnan(float(ElementTree.fromstring(text).attrib["height"]))
        assert "nan" not in text


def test_a_label_without_room_is_left_out() -> None:
    crowd = tuple(pareto.Point(f"name-{i}", 100 + i, 0.5 + i * 1e-5) for i in range(40))
    text = pareto.draw(pareto.Pareto("p", "steps", (*crowd, pareto.Point("far", 9, 0.1))), "p", 358)
    named = [e.text for e in elements(text, "text") if str(e.text).startswith("name-")]
    assert 0 < len(named) <= 8
    assert len([hint for hint in hinted(text, "circle") if hint.startswith("name-")]) == 40


def test_a_tick_without_room_has_no_label() -> None:
    every = tuple(range(100, 140))
    text = shots.draw(shots.Shots("s", (shots.Curve("a", every, (0.5,) * 40),)), "s", 358)
    shown = [int(str(e.text)) for e in elements(text, "text") if str(e.text) in map(str, every)]
    assert 2 <= len(shown) <= 14
    assert shown[0] == 100
