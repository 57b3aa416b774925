"""Charts: well-formed, escaped, readable, equal for equal numbers, marks where the numbers are."""

import base64
import ctypes.util
import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from support import browser

from fsbench.core import plotting
from fsbench.core.panels import Curve, Panel, draw_panels
from fsbench.core.plotting import GAIN, INK, LOSS, Drawing, render_figure, text_width
from leaderboard.charts import bars, critical, gaps, heat_map, scatter
from leaderboard.charts.scatter import LabelBox, Point, Scatter, pareto_front

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


def a_heat_map(width: float) -> Drawing:
    chart = heat_map.HeatMap("<b>", NAMES, TASKS, rows(0), rows(-0.008), rows(0.008))
    return heat_map.draw(chart, width)


def some_curves(width: float) -> Drawing:
    curves = tuple(
        Curve(label=n, x=(1, 5, 20, 50), y=(y := (40.0 + i, 50.0, 60.0, 65.0)), **ends(y))
        for i, n in enumerate(NAMES)
    )
    chart = Panel(title="<b>", x="shots", y="accuracy (%)", curves=curves, log_x=True)
    return draw_panels([chart], "<b>", width)


def ends(means: tuple[float, ...]) -> dict[str, Any]:
    return {"low": tuple(m - 1 for m in means), "high": tuple(m + 1 for m in means)}


def a_pareto(width: float) -> Drawing:
    points = tuple(
        Point(n, 10.0 ** (i % 5 + 2), 0.4 + 0.03 * i, 0.39 + 0.03 * i, 0.41 + 0.03 * i)
        for i, n in enumerate(NAMES)
    )
    chart = Scatter("<b>", "optimizer steps <i>", "%", points, False, log_x=True, front=True)
    return scatter.draw(chart, width)


def some_gaps(width: float) -> Drawing:
    rows = tuple(
        gaps.GapRow(t, 0.01 * (i - 6), 0.01 * (i - 7), 0.01 * (i - 5)) for i, t in enumerate(TASKS)
    )
    return gaps.draw(gaps.GapChart("<b>", NAMES[4], NAMES[1], rows), width)


def a_critical(width: float) -> Drawing:
    ranks = (1.2, 2.1, 3.3, 4.2, 5.0, 5.9, 6.8, 7.5)
    pairs = tuple((NAMES[i], NAMES[i + 1]) for i in range(7))
    return critical.draw(critical.Critical("<b>", NAMES, ranks, 1.3, pairs), width)


def a_scatter(width: float) -> Drawing:
    points = tuple(
        Point(n, 0.2 + 0.01 * i, 0.4 - 0.03 * i, 0.39 - 0.03 * i, 0.41 - 0.03 * i, i % 2 == 0)
        for i, n in enumerate(NAMES)
    )
    x, y = "in-domain <i> (%)", "gain (points)"
    return scatter.draw(Scatter("<b>", x, y, points, level=0.3, diagonal=True), width)


def some_bars(width: float) -> Drawing:
    rows = tuple(
        bars.Bar(n, (10.0**i, None if i == 3 else 7.0 * i + 1)) for i, n in enumerate(NAMES)
    )
    chart = bars.BarChart("<b>", "episodes <i>", ("one", NAMES[1]), rows, log=True, reference=600.0)
    return bars.draw(chart, width)


CHARTS = [a_heat_map, some_curves, a_pareto, some_gaps, a_critical, a_scatter, some_bars]
every = pytest.mark.parametrize("draw", CHARTS, ids=lambda draw: draw.__name__)
widths = pytest.mark.parametrize("width", [358, 720, 1248])
Draw = Callable[[float], Drawing]


@cache
def drawn(draw: Draw, width: float) -> Drawing:
    return draw(width)


@cache
def svg_of(draw: Draw, width: float) -> str:
    return drawn(draw, width).to_svg("one")


def parsed(text: str) -> Element:
    return ElementTree.fromstring(text)


def texts(drawing: Drawing) -> list[str]:
    """Texts of the SVG in their order."""
    return [str(e.text) for e in parsed(drawing.to_svg("t")).iter(f"{SVG}text")]


def marks(drawing: Drawing) -> dict[str, Any]:
    """Artists of the drawing by the hint that a pointer over them shows."""
    artists = {a.get_gid(): a for ax in drawing.figure.axes for a in ax.findobj()}
    return {hint: artists[gid] for gid, hint in drawing.hints.items()}


def lines(drawing: Drawing) -> list[Any]:
    """Lines of the first axes, without marks of single points."""
    return [line for line in drawing.figure.axes[0].lines if len(line.get_xdata()) > 1]


def data(line: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in line.get_xydata()]


@every
def test_well_formed_named_and_described(draw: Draw) -> None:
    root = parsed(svg_of(draw, 358))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    labels = [root.find(f"*[@id='{key}']") for key in str(root.get("aria-labelledby")).split()]
    assert [label.tag for label in labels if label is not None] == [f"{SVG}title", f"{SVG}desc"]
    assert [bool(label.text) for label in labels if label is not None] == [True, True]
    assert root.findtext(f"{SVG}title") == "<b>"


@every
def test_names_are_text_and_nothing_else(draw: Draw) -> None:
    text = svg_of(draw, 1248)
    tags = {element.tag.removeprefix(SVG) for element in parsed(text).iter()}
    shapes = {"rect", "path", "g", "use", "defs", "clipPath", "text"}
    assert tags <= {"svg", "title", "desc", *shapes}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\u202a-\u202e]", text)
    attributes = {key for element in parsed(text).iter() for key in element.attrib}
    assert not [key for key in attributes if key.lower().startswith("on") or key == "style"]


@every
def test_ids_are_those_of_the_chart_alone(draw: Draw) -> None:
    svgs = [drawn(draw, 720).to_svg(name) for name in ("one", "two")]
    ids_by_chart = [[i for e in parsed(svg).iter() if (i := e.get("id"))] for svg in svgs]
    assert all(len(set(ids)) == len(ids) for ids in ids_by_chart)
    assert not set(ids_by_chart[0]) & set(ids_by_chart[1])
    for text, ids in zip(svgs, ids_by_chart, strict=True):
        used = re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", text)
        assert {a or b for a, b in used} <= set(ids)


@every
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_same_numbers_same_bytes(draw: Draw, suffix: str) -> None:
    path = Path(f"one{suffix}")
    first = drawn(draw, 720)
    assert render_figure(first, path) == render_figure(draw(720), path)
    assert render_figure(first, path) == render_figure(first, path), "saving changes nothing"


@every
def test_colours_are_those_of_the_page(draw: Draw) -> None:
    text = svg_of(draw, 720)
    assert not re.search(r"(fill|stroke|color)[=:] ?\"?(#|black|white|rgb)", text)
    assert "<style" not in text
    root = parsed(text)
    assert root.get("fill") == "currentColor"
    assert not [e for e in root.iter(f"{SVG}text") if e.get("fill")]


@every
@widths
def test_no_text_is_small_leaves_the_picture_or_meets_another(draw: Draw, width: float) -> None:
    root = parsed(svg_of(draw, width))
    wide, high = (float(str(root.get(side))) for side in ("width", "height"))
    boxes = [box(element) for element in root.iter(f"{SVG}text") if (element.text or "").strip()]
    assert boxes
    for text_box in boxes:
        assert text_box.left >= -1
        assert text_box.top >= -1
        assert text_box.right <= wide + 1
        assert text_box.bottom <= high + 1
    for a, b in combinations(boxes, 2):
        assert not a.meets(b), (a, b)


def box(element: Element) -> LabelBox:
    """What a text takes at most; the height is that of its letters, not of the line."""
    assert element.get("font-size") is None, "all text has the size of the root, 11 px"
    x, y = (float(element.attrib[key]) for key in "xy")
    wide = text_width(element.text or "")
    left = x - {None: 0.0, "middle": wide / 2, "end": wide}[element.get("text-anchor")]
    if (element.get("transform") or "").startswith("rotate(-90"):
        return LabelBox(x - 8, y - (x - left) - (wide if left == x else 0), x, y + (x - left))
    return LabelBox(left, y - 8, left + wide, y)


@every
def test_a_file_has_literal_colours_and_its_title_on_top(draw: Draw) -> None:
    svg = render_figure(drawn(draw, 720), Path("one.svg")).decode()
    root = parsed(svg)
    assert not re.search(r"var\(|currentColor|<style|style=", svg)
    shown = {value for e in root.iter() for k in ("fill", "stroke") if (value := e.get(k))}
    assert all(re.fullmatch(r"none|#[0-9a-f]{6}", colour) for colour in shown)
    top = min(root.iter(f"{SVG}text"), key=lambda text: float(text.attrib["y"]))
    assert (top.text, top.get("font-weight")) == ("<b>", "700")
    higher = float(root.attrib["height"]) - drawn(draw, 720).size[1]
    assert higher == pytest.approx(plotting.TITLE_HEIGHT, abs=0.01)
    assert "<b>" not in texts(drawn(draw, 720)), "saving leaves no title behind"


SCALE = 3
"""Pixels per unit, so that lines have pixels of their own colour."""
EDGE_PIXELS = 700
"""As many may be the half covered edges of lines, which look like a half transparent series."""


def render_resvg(svg: str) -> Image.Image:
    resvg = pytest.importorskip("resvg_py", reason="resvg-py is in the dev extra")
    return Image.open(io.BytesIO(bytes(resvg.svg_to_bytes(svg_string=svg, zoom=SCALE))))


def render_librsvg(svg: str) -> Image.Image:
    """Draw by librsvg through its C interface, onto a surface of cairo."""
    names = [ctypes.util.find_library(name) for name in ("rsvg-2", "cairo", "gobject-2.0")]
    if None in names:
        pytest.skip("no librsvg: apt-get install librsvg2-2")
    rsvg, cairo, _ = (ctypes.CDLL(name) for name in names)
    number, pointer = ctypes.c_double, ctypes.c_void_p
    for function in (
        rsvg.rsvg_handle_new_from_data,
        cairo.cairo_image_surface_create,
        cairo.cairo_create,
        cairo.cairo_image_surface_get_data,
    ):
        function.restype = pointer
    root, data = parsed(svg), svg.encode()
    wide, high = (math.ceil(SCALE * float(root.attrib[side])) for side in ("width", "height"))
    handle = pointer(rsvg.rsvg_handle_new_from_data(data, ctypes.c_size_t(len(data)), None))
    assert handle.value, "librsvg reads the file"
    surface = pointer(cairo.cairo_image_surface_create(0, wide, high))
    context = pointer(cairo.cairo_create(surface))
    area = (number * 4)(0, 0, wide, high)
    assert rsvg.rsvg_handle_render_document(handle, context, area, None)
    cairo.cairo_surface_flush(surface)
    start = cairo.cairo_image_surface_get_data(surface)
    pixels = ctypes.string_at(start, 4 * wide * high)
    return Image.frombuffer("RGBA", (wide, high), pixels, "raw", "BGRA", 0, 1)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def render_chromium(svg: str, driver: Any, path: Path) -> Image.Image:
    path.write_text(svg, encoding="utf8")
    driver.get(path.as_uri())
    root = parsed(svg)
    wide, high = (float(root.attrib[side]) for side in ("width", "height"))
    clip = {"x": 0, "y": 0, "width": wide, "height": high, "scale": SCALE}
    options = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", options)
    return Image.open(io.BytesIO(base64.b64decode(shot["data"])))


def render_pdf(pdf: bytes) -> Image.Image:
    pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 is in the dev extra")
    image: Image.Image = pdfium.PdfDocument(pdf)[0].render(scale=SCALE).to_pil()
    return image


def series_of(svg: str) -> set[tuple[int, int, int]]:
    """Colours of what the file draws, over white; paler ones cannot be told from their edges."""
    colours = set()
    for element in parsed(svg).iter():
        for kind in ("fill", "stroke"):
            if re.fullmatch(r"#\w{6}", value := element.get(kind, "none")) and element.tag != "svg":
                opacity = float(element.get("opacity", element.get(f"{kind}-opacity", 1)))
                rgb = (int(value[i : i + 2], 16) for i in (1, 3, 5))
                colours.add(tuple(round(255 - opacity * (255 - c)) for c in rgb))
    return {(r, g, b) for r, g, b in colours if max(r, g, b) - min(r, g, b) > 40}


def flatten(image: Image.Image) -> NDArray[np.int16]:
    """Pixels (height, width, 3) on white."""
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
    return np.asarray(flat, np.int16)


def count_pixels(image: Image.Image, colour: tuple[int, int, int]) -> int:
    return int((np.abs(flatten(image) - colour) <= 6).all(axis=2).sum())


def blur(image: Image.Image, size: tuple[int, int]) -> NDArray[np.float64]:
    """Coarse grid of the picture, on which the edges of letters and lines do not matter."""
    pixels = Image.fromarray(flatten(image).astype(np.uint8))
    return np.asarray(pixels.resize(size, Image.Resampling.BOX), np.float64)


@every
def test_a_file_shows_each_series_in_every_renderer(
    draw: Draw, driver: Any, tmp_path: Path
) -> None:
    """A browser, resvg, librsvg and a PDF: as much of every colour, and the same picture."""
    svg = render_figure(drawn(draw, 720), Path("one.svg")).decode()
    reference = render_pdf(render_figure(drawn(draw, 720), Path("one.pdf")))
    images = {
        "chromium": render_chromium(svg, driver, tmp_path / "one.svg"),
        "resvg": render_resvg(svg),
        "librsvg": render_librsvg(svg),
    }
    grid = 90, round(90 * reference.height / reference.width)
    colours = series_of(svg)
    assert bool(colours) == (draw is not a_critical)
    for name, image in images.items():
        for colour in colours:
            expected, count = (count_pixels(i, colour) for i in (reference, image))
            assert expected > 0, colour
            assert 0.88 * expected < count < 1.12 * expected + EDGE_PIXELS, (name, colour)
        gap = np.abs(blur(image, grid) - blur(reference, grid))
        assert gap.mean() < 2, name


def heat() -> heat_map.HeatMap:
    return heat_map.HeatMap(
        "gain",
        ("a", "b"),
        ("x", "y", "z"),
        ((0.02, -0.01, None), (0.0, 0.005, -0.04)),
        ((0.01, -0.02, None), (-0.01, 0.0, -0.05)),
        ((0.03, 0.01, None), (0.01, 0.01, -0.03)),
    )


def test_cells_of_a_heat_map_have_colour_number_and_hint() -> None:
    drawing = heat_map.draw(heat(), 300)
    cells = {hint: mark for hint, mark in marks(drawing).items() if "points" in hint}
    gain = cells["a, x: +2.00 points, 95 % interval 1.00 to 3.00"]
    loss = cells["b, z: −4.00 points, 95 % interval -5.00 to -3.00"]
    assert len(cells) == 5, "five of the six cells are measured"
    assert gain.get_x() + gain.get_width() / 2 == pytest.approx(0)
    assert loss.get_x() + loss.get_width() / 2 == pytest.approx(2)
    assert loss.get_y() + loss.get_height() / 2 == pytest.approx(1)
    assert (gain.get_alpha(), loss.get_alpha()) == (pytest.approx(0.31), pytest.approx(0.62))
    assert same_colour(gain.get_facecolor(), GAIN)
    assert same_colour(loss.get_facecolor(), LOSS)
    numbers = [t for t in texts(drawing) if re.fullmatch(r"[+−]?\d\.\d\d", t)]
    assert numbers == ["+2.00", "−1.00", "0.00", "+0.50", "−4.00"]
    assert {"a", "b", "x", "y", "z"} <= set(texts(drawing))


def same_colour(rgba: tuple[float, ...], colour: str) -> bool:
    return "#" + "".join(f"{round(255 * c):02x}" for c in rgba[:3]) == colour


def test_a_heat_map_marks_only_intervals_without_zero() -> None:
    assert [*heat().significant()] == [(0, 0), (1, 2)]
    drawing = heat_map.draw(heat(), 300)
    assert "excludes 0 in 2 cells" in drawing.description
    (dots,) = (line for line in drawing.figure.axes[0].lines if line.get_marker() == "o")
    assert [(round(x), round(y)) for x, y in data(dots)] == [(0, 0), (2, 1)]


def test_a_heat_map_of_many_columns_grows_and_shows_no_numbers() -> None:
    n = 60
    many = heat_map.HeatMap("g", ("a",), ("c",) * n, ((0.01,) * n,), ((0.0,) * n,), ((0.02,) * n,))
    drawing = heat_map.draw(many, 358)
    assert drawing.size[0] > 16 * n
    assert "+1.00" not in texts(drawing)


POINTS = (
    Point("cheap", 100, 0.4),
    Point("beaten", 1000, 0.39),
    Point("best", 10_000, 0.6),
    Point("middle", 1000, 0.5),
    Point("dear", 20_000, 0.6),
)


def test_the_front_by_hand() -> None:
    assert [p.label for p in pareto_front(POINTS)] == ["cheap", "middle", "best"]
    twins = (*POINTS, Point("twin", 1000, 0.5))
    assert [p.label for p in pareto_front(twins)] == ["cheap", "middle", "twin", "best"]
    assert pareto_front(()) == []


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=12))
def test_the_front_is_what_nothing_beats(pairs: list[tuple[int, int]]) -> None:
    points = [Point(str(i), c, a / 10) for i, (c, a) in enumerate(pairs)]

    def beaten(p: Point) -> bool:
        return any(q.x <= p.x and q.y >= p.y and (q.x, q.y) != (p.x, p.y) for q in points)

    assert {p.label for p in pareto_front(points)} == {p.label for p in points if not beaten(p)}


def test_the_front_is_a_line_of_steps_through_its_points() -> None:
    chart = Scatter("p", "steps", "accuracy (%)", POINTS, percent_x=False, log_x=True, front=True)
    drawing = scatter.draw(chart, 500)
    (stair,) = lines(drawing)
    *corners, (_, last) = data(stair)
    assert corners == [(100, 40), (1000, 40), (1000, 50), (10_000, 50), (10_000, 60)]
    assert last == 60
    dots = {hint.split(":")[0]: mark for hint, mark in marks(drawing).items()}
    assert {name: data(mark) for name, mark in dots.items()} == {
        p.label: [(p.x, 100 * p.y)] for p in POINTS
    }
    assert dots["beaten"].get_color() == INK
    assert dots["middle"].get_color() == GAIN
    assert "dear: 20k, 60.00 %" in drawing.hints.values()
    assert drawing.figure.axes[0].get_xscale() == "log"
    assert {p.label for p in POINTS} <= set(texts(drawing))
    assert "None beats in both: cheap, middle, best." in drawing.description


def test_a_level_and_a_diagonal_are_lines_and_significant_points_are_coloured() -> None:
    points = (
        Point("up", 0.2, 0.3, 0.25, 0.35, significant=True),
        Point("down", 0.3, 0.1, significant=True),
        Point("open", 0.25, 0.2),
    )
    plain = scatter.draw(Scatter("t", "x", "y", points))
    lined = scatter.draw(Scatter("t", "x", "y", points, level=0.2, diagonal=True))
    assert [data(line) for line in lines(plain)] == [[(20, 25), (20, 35)]]
    level, diagonal = (data(line) for line in lines(lined) if line.get_linestyle() == "--")
    assert [y for _, y in level] == [20, 20]
    assert all(x == y for x, y in diagonal)
    assert [mark.get_color() for mark in marks(lined).values()] == [GAIN, LOSS, INK]
    assert "up: 20.00 %, 30.00 %, 95 % interval 25.00 to 35.00" in lined.hints.values()


def test_gaps_by_hand() -> None:
    rows = (
        gaps.GapRow("up", 0.02, 0.01, 0.03),
        gaps.GapRow("even", 0.0, -0.01, 0.01),
        gaps.GapRow("down", -0.02, -0.03, -0.01),
        gaps.GapRow("unknown", 0.01, None, None),
    )
    drawing = gaps.draw(gaps.GapChart("g", "A", "B", rows), 400)
    shown = {h.split(":")[0]: m for h, m in marks(drawing).items() if "points" in h}
    assert {name: data(mark)[0] for name, mark in shown.items()} == {
        "up": (2, 0), "even": (0, 1), "down": (-2, 2), "unknown": (1, 3)
    }  # fmt: skip
    assert [mark.get_color() for mark in shown.values()] == [GAIN, INK, LOSS, INK]
    zero, *intervals = lines(drawing)
    assert zero.get_xdata() == [0, 0]
    assert [data(line) for line in intervals] == [
        [(1, 0), (3, 0)],
        [(-1, 1), (1, 1)],
        [(-3, 2), (-1, 2)],
    ]
    assert {"← B ahead", "A ahead →", "+2.00", "0.00", "−2.00", "+1.00"} <= set(texts(drawing))
    assert "above 0 in 1 and below it in 1" in drawing.description


def test_a_gap_is_coloured_by_its_interval_or_by_a_test() -> None:
    rows = [
        gaps.GapRow("", 0.1, 0.05, 0.15),
        gaps.GapRow("", -0.1, -0.2, 0.1),
        gaps.GapRow("", 0.1, None, None),
    ]
    assert [gap.side for gap in rows] == [1, 0, 0]
    by_test = [gaps.GapRow("", 0.1, 0.05, 0.15, False), gaps.GapRow("", -0.1, -0.2, 0.1, True)]
    assert [gap.side for gap in by_test] == [0, -1]


def test_bars_are_as_long_as_their_numbers() -> None:
    rows = (bars.Bar("x", (1.0, 2.0)), bars.Bar("y", (4.0, None)))
    drawing = bars.draw(bars.BarChart("t", "points", ("a", "b"), rows, reference=3.0))
    axes = drawing.figure.axes[0]
    assert [patch.get_width() for patch in axes.patches] == [1, 2, 4]
    assert [patch.get_x() for patch in axes.patches] == [0, 0, 0]
    assert {"x", "y", "a", "b", "1", "2", "4"} <= set(texts(drawing))
    assert [line.get_xdata() for line in lines(drawing)] == [[3.0, 3.0]]


def test_a_critical_difference_diagram_joins_what_does_not_differ() -> None:
    chart = critical.Critical("c", ("a", "b", "c"), (1, 2, 3.5), 1.6, (("a", "b"), ("b", "c", "z")))
    assert chart.bars() == [(1, 2), (2, 3.5)]
    drawing = critical.draw(chart, 720)
    assert {"a 1.00", "b 2.00", "c 3.50", "critical difference 1.60"} <= set(texts(drawing))
    thick = [line for line in lines(drawing) if line.get_linewidth() == 3]
    assert [tuple(line.get_xdata()) for line in thick] == chart.bars()
    assert "a 1.00, b 2.00, c 3.50" in drawing.description
    apart = critical.draw(critical.Critical("c", ("a", "b"), (1, 2), 0.5, ()), 720)
    assert not [line for line in lines(apart) if line.get_linewidth() == 3]


def test_empty_charts_are_drawn() -> None:
    empty = [
        heat_map.draw(heat_map.HeatMap("t", (), (), (), (), ())),
        draw_panels([], "t"),
        scatter.draw(Scatter("t", "steps", "%", (), log_x=True, front=True)),
        gaps.draw(gaps.GapChart("t", "a", "b", ())),
        bars.draw(bars.BarChart("t", "n", ("a",), (), log=True)),
        critical.draw(critical.Critical("t", (), (), 1.0, ())),
    ]
    for drawing in empty:
        text = drawing.to_svg("x")
        assert not math.isnan(float(parsed(text).attrib["height"]))
        assert "nan" not in text


def test_a_label_without_room_is_left_to_the_pointer() -> None:
    crowd = tuple(Point(f"name-{i}", 100 + i, 0.5 + i * 1e-5) for i in range(40))
    chart = Scatter("p", "steps", "%", (*crowd, Point("far", 9, 0.1)), False, log_x=True)
    drawing = scatter.draw(chart, 358)
    assert 0 < len([text for text in texts(drawing) if text.startswith("name-")]) < 40
    assert len([hint for hint in drawing.hints.values() if hint.startswith("name-")]) == 40


def test_outliers_are_clipped_at_the_edge_and_marked() -> None:
    """One value far away flattens no other one; its number stays readable."""
    values = [0.01 * i for i in range(10)]
    assert plotting.clip_range([*values, 9.0]) == (0.0, pytest.approx(0.09))
    assert plotting.clip_range([0.0] * 9 + [5.0]) == (0.0, 5.0), "without spread nothing is far"
    assert plotting.clip_range([0, 1, 9.0]) == (0, 9)
    rows = [gaps.GapRow(f"{v:g}", v, v - 0.01, v + 0.01) for v in [*values, 9.0]]
    drawing = gaps.draw(gaps.GapChart("g", "A", "B", tuple(rows)))
    axes = drawing.figure.axes[0]
    assert axes.get_xlim()[1] < 12
    assert [line.get_marker() for line in axes.lines].count(">") == 1
    assert "+900.00" in texts(drawing)
    points = tuple(Point(f"p{i}", i, v) for i, v in enumerate([*values, 9.0], 1))
    drawing = scatter.draw(Scatter("t", "x", "y", points, percent_x=False))
    assert drawing.figure.axes[0].get_ylim()[1] < 12
    assert marks(drawing)["p11: 11, 900.00 %"].get_marker() == "^"
    assert "p11 900.00" in texts(drawing)
    bar_rows = tuple(bars.Bar(f"b{i}", (v,)) for i, v in enumerate([*values, 9.0]))
    drawing = bars.draw(bars.BarChart("t", "n", ("a",), bar_rows))
    assert max(patch.get_width() for patch in drawing.figure.axes[0].patches) == values[-1]
    assert [line.get_marker() for line in drawing.figure.axes[0].lines] == [">"]
    assert "9" in texts(drawing)


def test_the_colours_of_a_heat_map_ignore_an_outlier_and_mark_it() -> None:
    values = (*(0.001 * i for i in range(1, 11)), -0.9)
    chart = heat_map.HeatMap("g", ("a",), TASKS[:11], (values,), ((None,) * 11,), ((None,) * 11,))
    assert chart.largest == 0.01
    drawing = heat_map.draw(chart)
    assert "v" in [line.get_marker() for line in drawing.figure.axes[0].lines]
    assert any("triangle: off scale" in text for text in texts(drawing))


def test_notes_of_a_heat_map_fold_on_a_phone_and_are_not_cut() -> None:
    values = (*(0.001 * i for i in range(1, 11)), -0.9)
    none = ((None,) * 11,)
    chart = heat_map.HeatMap("g", ("a",), TASKS[:11], (values,), none, none, frozenset({0}))
    notes = ["95 % interval excludes 0", "hollow: one seed", "triangle: off scale"]
    wide, phone = heat_map.draw(chart, 1180), heat_map.draw(chart, 358)
    assert "; ".join(notes) in texts(wide)
    assert not [text for text in texts(phone) if "scale" in text and "…" in text]
    assert {"; ".join(notes[:2]), notes[2]} <= set(texts(phone))


def test_a_heat_map_of_few_columns_takes_the_width_of_a_desk() -> None:
    chart = heat_map.HeatMap("g", ("a",), TASKS[:8], ((0.01,) * 8,), ((0.0,) * 8,), ((0.02,) * 8,))
    drawing = heat_map.draw(chart, 1180)
    cells = drawing.figure.axes[0].get_window_extent().width / drawing.figure.dpi * 72
    assert cells > 0.8 * 1180


def test_one_seed_is_drawn_hollow() -> None:
    rows = (gaps.GapRow("one", 0.01, 0, 0.02, single=True), gaps.GapRow("many", 0.01, 0, 0.02))
    drawing = gaps.draw(gaps.GapChart("g", "A", "B", rows))
    faces = {
        hint.split(":")[0]: mark.get_markerfacecolor()
        for hint, mark in marks(drawing).items()
        if "points" in hint
    }
    assert (faces["one"], faces["many"]) == (plotting.PAPER, INK)
    assert any("hollow: one seed" in text for text in texts(drawing))
    points = (Point("one", 0.1, 0.2, single=True), Point("many", 0.2, 0.3))
    faces = {
        h.split(":")[0]: m.get_markerfacecolor()
        for h, m in marks(scatter.draw(Scatter("t", "x", "y", points))).items()
    }
    assert (faces["one"], faces["many"]) == (plotting.PAPER, INK)
    drawing = heat_map.draw(replace(heat(), single=frozenset({1})), 300)
    filled = {h[0]: m.get_fill() and m.get_facecolor()[3] > 0 for h, m in marks(drawing).items()
              if "points" in h}  # fmt: skip
    assert filled == {"a": True, "b": False}


def test_points_of_equal_cost_lie_side_by_side() -> None:
    equal = (Point(f"p{i}", 100, 0.5 + 1e-4 * i) for i in range(5))
    points = (*equal, Point("q", 10, 0.4))
    drawing = scatter.draw(Scatter("t", "x", "%", points, percent_x=False, log_x=True))
    dots = {h.split(":")[0]: data(m)[0] for h, m in marks(drawing).items()}
    assert len({round(x, 3) for x, _ in dots.values()}) == 6
    assert dots["p0"][0] == 100
    assert [y for _, y in dots.values()] == pytest.approx([100 * p.y for p in points])
