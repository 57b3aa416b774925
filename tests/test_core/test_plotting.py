"""The figure style: text that fits, numbers as people read them, formats, and panels of curves."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.colours import compute_contrast, parse_hex

from fsbench.core.errors import UsageError
from fsbench.core.panels import Curve, Panel, draw_panels, fill_panel
from fsbench.core.plotting import (
    DARK,
    LIGHT,
    Drawing,
    clean_text,
    css_variables,
    fit_text,
    padded,
    render_figure,
    short_number,
    signed,
    style,
    text_width,
    write_figure,
)

SVG = "{http://www.w3.org/2000/svg}"
PANEL = Panel(
    title="norms",
    x="epoch",
    y="norm",
    curves=(
        Curve(label="ours", x=(1, 2), y=(3, 4), low=(2, 3), high=(4, 5)),
        Curve(label="_paper $x$", x=(1, 2), y=(2, 5), published=True),
    ),
)
LOOKS = {"log_x": True, "y_scale": "symlog", "from_zero": True, "ticks": ("p", "q")}


@settings(deadline=None)
@given(st.text(), st.floats(20, 300))
def test_fitted_text_fits(text: str, room: float) -> None:
    shown = fit_text(text, room)
    assert text_width(shown) <= room
    assert shown == clean_text(text) or "…" in shown


def test_a_cut_name_keeps_its_end() -> None:
    name = "pilot-normal-schedule=single_cycle"
    cut = [fit_text(f"{name}-s{i}", 140) for i in (0, 1)]
    assert cut[0].startswith("pilot-normal")
    assert [text[-3:] for text in cut] == ["-s0", "-s1"]
    assert fit_text(name, 30).endswith("…")


def test_wide_characters_take_an_em() -> None:
    assert text_width("日本") == pytest.approx(22, abs=0.5)


def test_numbers_as_people_read_them() -> None:
    shown = [short_number(v) for v in (0.25, 500, 20_000, 1.5e6, 3e9, 2e15, -2000)]
    assert shown == ["0.25", "500", "20k", "1.5M", "3G", "2e+15", "−2k"]
    gaps = [signed(v) for v in (0.0123, -0.005, 0.0, -0.00001)]
    assert gaps == ["+1.23", "−0.50", "0.00", "0.00"]


def test_limits_leave_room_and_are_never_empty() -> None:
    assert padded([2.0, 3.0]) == (pytest.approx(1.94), pytest.approx(3.06))
    assert padded([1.0, 100.0], log=True) == (pytest.approx(100**-0.06), pytest.approx(100**1.06))
    for values in ([], [0.0], [0.5, 0.5]):
        low, high = padded(values)
        assert low < high
        assert padded([1.0, *values[:0]], log=True)[0] < 1


def test_a_panel_shows_its_curves_published_ones_dashed() -> None:
    drawing = Drawing.create("t", "d", 400, 300)
    axes = drawing.figure.subplots()
    fill_panel(drawing, axes, PANEL)
    ours, paper = (line for line in axes.get_lines() if len(line.get_xdata()) > 1)
    assert list(ours.get_ydata()) == [3, 4]
    assert (ours.get_linestyle(), paper.get_linestyle()) == ("-", "--")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "_paper $x$"]
    assert axes.get_xlabel() == "epoch"
    assert len(axes.collections) == 1, "a band for the curve with a range"
    assert "ours, 2: 4 (3 to 5)" in drawing.hints.values()


def test_scales_ticks_and_bars_of_panels() -> None:
    bars = Panel(title="bars", x="", y="n", bars=True, curves=(Curve(label="a", x=(1,), y=(4,)),))
    drawing = draw_panels([PANEL.model_copy(update=LOOKS), bars], "both")
    left, right = drawing.figure.axes
    assert (left.get_xscale(), left.get_yscale(), left.get_ylim()[0]) == ("log", "symlog", 0)
    assert [text.get_text() for text in left.get_xticklabels()] == ["p", "q"]
    assert [patch.get_height() for patch in right.patches] == [4]
    assert [axes.get_title() for axes in drawing.figure.axes] == ["norms", "bars"]


def test_shots_stand_at_their_numbers_on_a_log_axis() -> None:
    curve = Curve(label="a", x=(1, 5, 20), y=(40, 50, 60))
    panel = Panel(title="s", x="shots", y="%", curves=(curve,), log_x=True)
    (axes,) = draw_panels([panel], "s", 400).figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "5", "20"]
    assert axes.get_title() == "", "the page shows the title"


def test_twenty_curves_look_different() -> None:
    curves = tuple(Curve(label=f"c{i}", x=(1, 5), y=(4, 5)) for i in range(20))
    (axes,) = draw_panels([PANEL.model_copy(update={"curves": curves})], "").figure.axes
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) > 1]
    assert len({(line.get_color(), str(line._dash_pattern)) for line in lines}) == 20


def test_files_of_every_format_repeat(tmp_path: Path) -> None:
    for suffix, start in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        for name in ("a", "b"):
            write_figure(draw_panels([PANEL] * 4, "four"), tmp_path / f"{name}{suffix}")
        first = (tmp_path / f"a{suffix}").read_bytes()
        assert first.startswith(start)
        if suffix != ".svg":  # ids of an SVG begin with its name
            assert first == (tmp_path / f"b{suffix}").read_bytes()
        else:
            assert first == render_figure(draw_panels([PANEL] * 4, "four"), tmp_path / "a.svg")
    with pytest.raises(UsageError, match="no figure format"):
        write_figure(draw_panels([PANEL], ""), tmp_path / "a.bmp")


def test_hostile_text_stays_text() -> None:
    hostile = "$\\frac{1}{0}$ <script>alert(1)</script> \x00\x1b\ud800\u202e"
    panel = PANEL.model_copy(
        update={"y": hostile, "curves": (Curve(label=hostile, x=(1,), y=(1,)),)}
    )
    root = ElementTree.fromstring(draw_panels([panel], hostile, 900).to_svg('"><script>'))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert any(text.startswith("$\\frac{1}{0}$ <script>") for text in texts)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "<" not in str(root.get("id"))


def test_the_style_leaves_the_settings_of_others_alone() -> None:
    with matplotlib.rc_context({"font.size": 40, "text.parse_math": True}):
        svg = draw_panels([PANEL], "").to_svg("a")
        assert matplotlib.rcParams["font.size"] == 40
    assert svg == draw_panels([PANEL], "").to_svg("a")
    with style():
        assert matplotlib.rcParams["text.parse_math"] is False


def test_lines_and_text_are_readable_in_both_schemes() -> None:
    for theme in (LIGHT, DARK):
        paper, ink, *series = (parse_hex(c) for c in (theme.paper, theme.ink, *theme.series))
        assert compute_contrast(paper, ink) >= 7
        assert min(compute_contrast(paper, colour) for colour in series) >= 3
        assert css_variables(theme).count("--chart-") == len(theme.series) + 1


def test_importing_the_charts_does_not_import_matplotlib() -> None:
    check = (
        "import sys, leaderboard.site.panels, fsbench.core.panels;"
        "print('matplotlib' in sys.modules, 'pyplot' in str(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr
