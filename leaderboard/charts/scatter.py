"""One number of every entry against another: a point each, with the interval of the second."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.charts._axes import (
    Plot,
    Scale,
    Tick,
    horizontal_axis,
    left_margin,
    padded,
    percents,
    round_ticks,
    vertical_axis,
)
from leaderboard.charts._labels import Labels, around
from leaderboard.charts._svg import GAIN, LOSS, SMALL, Drawing, interval, percent

HEIGHT, FOOT = 320.0, 44.0


@dataclass(frozen=True)
class Dot:
    """An entry at (x, y) and the ends of the 95 % interval of y; sure: y differs from the level."""

    label: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    sure: bool = False


@dataclass(frozen=True)
class Scatter:
    """x, y: what the axes show, with units; y is a fraction shown in percent, and x too unless it
    is `plain`. level: where a line is drawn across, e.g. a gain of 0; even: and where x equals y.
    """

    title: str
    x: str
    y: str
    dots: tuple[Dot, ...]
    plain: bool = False
    level: float | None = None
    even: bool = False


def draw(chart: Scatter, name: str, width: float = 720) -> str:
    """Coloured where a point is sure to differ from the level."""
    ends = [v for d in chart.dots for v in (d.y, d.low, d.high) if v is not None] or [0.0, 1.0]
    ends += [] if chart.level is None else [chart.level]
    low, high = padded(ends)
    left, right = padded([d.x for d in chart.dots] or [0.0, 1.0])
    ticks = [Tick(tick.at, tick.label.replace("-", "−")) for tick in percents(low, high)]
    plot = Plot(left_margin(ticks), 24.0, width - 12, HEIGHT)
    drawing = Drawing(name, chart.title, describe(chart), width, HEIGHT + FOOT)
    x = Scale(left, right, plot.left, plot.right)
    y = Scale(low, high, plot.bottom, plot.top)
    drawing.write(0, 12, chart.y, font_size=SMALL)
    vertical_axis(drawing, plot, y, ticks)
    horizontal_axis(drawing, plot, x, across(chart, left, right), chart.x)
    lines(drawing, chart, plot, x, y)
    labels = Labels(plot, [around(x(d.x), y(d.y)) for d in chart.dots])
    for dot in chart.dots:
        mark(drawing, chart, dot, x, y)
    for dot in chart.dots:
        labels.place(drawing, dot.label, x(dot.x), y(dot.y))
    return drawing.svg()


def describe(chart: Scatter) -> str:
    return f"{chart.y} against {chart.x} of {len(chart.dots)} entries."


def across(chart: Scatter, low: float, high: float) -> list[Tick]:
    """Ticks of the horizontal axis."""
    return (
        [Tick(at, f"{at:g}") for at in round_ticks(low, high)]
        if chart.plain
        else percents(low, high)
    )


def lines(drawing: Drawing, chart: Scatter, plot: Plot, x: Scale, y: Scale) -> None:
    """The level, and the points where both numbers are equal."""
    dashed = {"stroke": "currentColor", "stroke_dasharray": "3 3", "opacity": 0.6}
    if chart.level is not None:
        at = y(chart.level)
        drawing.add("line", x1=plot.left, x2=plot.right, y1=at, y2=at, **dashed)
    if chart.even:
        low, high = max(x.low, y.low), min(x.high, y.high)
        if low < high:
            drawing.add("line", x1=x(low), y1=y(low), x2=x(high), y2=y(high), **dashed)


def mark(drawing: Drawing, chart: Scatter, dot: Dot, x: Scale, y: Scale) -> None:
    px, py = x(dot.x), y(dot.y)
    above = dot.y >= (chart.level or 0.0)
    colour = (GAIN if above else LOSS) if dot.sure else "currentColor"
    if dot.low is not None and dot.high is not None:
        ends = {"x1": px, "x2": px, "y1": y(dot.low), "y2": y(dot.high)}
        drawing.add("line", **ends, style=f"stroke:{colour}", opacity=0.5)
    style = f"fill:{colour}" if dot.sure else "fill:none;stroke:currentColor"
    found = drawing.add("circle", cx=px, cy=py, r=4, style=style, pointer_events="all")
    where = f"{dot.x:.4g}" if chart.plain else f"{percent(dot.x)} %"
    drawing.hint(found, f"{dot.label}: {where}, {percent(dot.y)} %{interval(dot.low, dot.high)}")
