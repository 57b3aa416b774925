"""The figure style: text that can be shown, numbers as people read them, formats, and panels."""

import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.colours import compute_contrast, parse_hex

from fsbench.core.errors import UsageError
from fsbench.core.plotting import (
    INK,
    PAPER,
    SERIES,
    clean_text,
    create_figure,
    draw_views,
    render_figure,
    set_scale,
    short_number,
    style,
    write_figure,
)
from fsbench.core.schema import View

SVG = "{http://www.w3.org/2000/svg}"
OURS = View(
    title="norms", x="epoch", y="norm", at=(1, 2), values=(3, 4), low=(2, 3), high=(4, 5)
).model_copy(update={"label": "_ours $x$"})  # fmt: skip
LOOKS = {"log_x": True, "y_scale": "symlog", "from_zero": True, "places": ("p", "q")}


@given(st.text(), st.integers(7, 60))
def test_text_is_one_line_that_is_cut_in_its_middle(text: str, longest: int) -> None:
    whole, shown = clean_text(text), clean_text(text, longest)
    assert not re.search(r"[\x00-\x1f\ud800-\udfff\u202a-\u202e\u2066-\u2069]", whole)
    assert len(shown) <= longest
    assert shown == whole or (shown[-5:] == whole[-5:] and "…" in shown)
    assert clean_text("pilot-normal-schedule=single_cycle-s0", 20) == "pilot-normal-s…le-s0"


def test_numbers_as_people_read_them() -> None:
    shown = [short_number(v) for v in (0.25, 500, 20_000, 1.5e6, 3e9, 2e15, -2000)]
    assert shown == ["0.25", "500", "20k", "1.5M", "3G", "2e+15", "−2k"]


@pytest.mark.parametrize(("values", "ticks"), [((1, 4), ["1", "2"]), ((2, 9e5), ["100", "10k"])])
def test_a_log_axis_has_short_numbers_and_few(values: tuple[float, ...], ticks: list[str]) -> None:
    figure = create_figure(200, 200, "")
    axes = figure.add_subplot()
    axes.plot(values, values)
    set_scale(axes, "x", "log")
    figure.draw_without_rendering()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert [text for text in shown if text in ticks] == ticks
    assert axes.get_xscale() == "log"


def test_panels_show_curves_with_their_ranges_scales_and_bars() -> None:
    figure = draw_views([OURS, View.bar("bars", 4)], "both")
    left, right = figure.axes
    (line,), (bars,), (legend,) = left.get_lines(), left.collections, figure.legends
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([1, 2], [3, 4])
    assert [segment.tolist() for segment in bars.get_segments()] == [
        [[1, 2], [1, 4]],
        [[2, 3], [2, 5]],
    ]
    assert [text.get_text() for text in legend.get_texts()] == ["_ours $x$"]
    titles = [axes.get_title(loc="left") for axes in (left, right)]
    assert [*titles, legend.get_title().get_text()] == ["norms", "bars", "both"]
    assert (left.get_xlabel(), left.get_ylabel()) == ("epoch", "norm")
    assert [patch.get_height() for patch in right.patches] == [4]
    assert [text.get_text() for text in right.texts] == ["4"]
    (axes,) = draw_views([OURS.model_copy(update=LOOKS)]).axes
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylim()[0]) == ("log", "symlog", 0)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["p", "q"]
    shots = View(title="s", x="shots", y="%", at=(1, 5, 20), values=(40, 50, 60), log_x=True)
    (axes,) = draw_views([shots]).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "5", "20"]


def test_twenty_curves_look_different_and_readable() -> None:
    views = [OURS.model_copy(update={"label": str(i)}) for i in range(20)]
    lines = draw_views(views).axes[0].get_lines()
    assert len({(line.get_color(), str(line._dash_pattern)) for line in lines}) == 20
    in_grey = {(line.get_marker(), str(line._dash_pattern)) for line in lines}
    assert len(in_grey) == 20
    paper, ink, *series = (parse_hex(colour) for colour in (PAPER, INK, *SERIES))
    assert compute_contrast(paper, ink) >= 7
    assert min(compute_contrast(paper, colour) for colour in series) >= 3


@pytest.mark.parametrize(("suffix", "start"), [("svg", "<svg"), ("png", "PNG"), ("pdf", "%PDF")])
def test_files_of_every_format_repeat(suffix: str, start: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for path in paths:
        write_figure(draw_views([OURS, View.bar("four", 4)], "two"), path)
    first, second = (path.read_bytes() for path in paths)
    assert start.encode() in first[:400]
    assert first == second
    assert not re.search(rb"20\d\d-\d\d-\d\d|D:20\d\d|[Mm]atplotlib (v|pdf|\d)", first)
    with pytest.raises(UsageError, match="no figure format"):
        write_figure(draw_views([OURS]), tmp_path / "a.bmp")


def test_hostile_text_stays_text() -> None:
    hostile = "$\\frac{1}{0}$ <script>alert(1)</script> \x00\x1b\ud800\u202e"
    view = OURS.model_copy(update={"y": hostile, "label": hostile})
    root = ElementTree.fromstring(render_figure(draw_views([view], hostile), "svg"))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert any(text.startswith("$\\frac{1}{0}$ <script>") for text in texts)
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_the_style_leaves_the_settings_of_others_alone() -> None:
    with matplotlib.rc_context({"font.size": 40, "text.parse_math": True}):
        svg = render_figure(draw_views([OURS]), "svg")
        assert matplotlib.rcParams["font.size"] == 40
    assert svg == render_figure(draw_views([OURS]), "svg")
    with style():
        assert matplotlib.rcParams["text.parse_math"] is False
