"""Numbers of every entry as bars, one or a few an entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leaderboard.charts import _legend
from leaderboard.charts._axes import (
    Plot,
    Scale,
    Tick,
    horizontal_axis,
    log_ticks,
    padded,
    round_ticks,
    short_number,
)
from leaderboard.charts._svg import SMALL, Drawing, fitted, widest

BAR, SPACE, TOP, FOOT = 11.0, 9.0, 8.0, 44.0
LABELS = 0.38
"""Share of the width that row labels may take."""


@dataclass(frozen=True)
class Bar:
    """An entry: a number for each series, None where unknown."""

    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Bars:
    """unit: what all numbers are, for the axis. log: for positive numbers of many sizes; marked:
    a number that a line shows, e.g. the episodes there are."""

    title: str
    unit: str
    series: tuple[str, ...]
    rows: tuple[Bar, ...]
    log: bool = False
    marked: float | None = None
    written: Callable[[float], str] = short_number


def draw(chart: Bars, name: str, width: float = 720) -> str:
    """From the left; the number stands behind its bar."""
    known = [v for row in chart.rows for v in row.values if v is not None]
    known += [] if chart.marked is None else [chart.marked]
    left = min(widest([row.label for row in chart.rows], SMALL), LABELS * width) + 14
    right = width - widest([chart.written(v) for v in known], SMALL) - 14
    high = BAR * len(chart.series) + SPACE
    bottom = TOP + high * len(chart.rows)
    legend = chart.series if len(chart.series) > 1 else ()
    foot = bottom + FOOT
    drawing = Drawing(
        name, chart.title, describe(chart), width, foot + _legend.height(legend, width)
    )
    x = scale(chart, known, left, right)
    marks = log_ticks(x.low, x.high) if chart.log else round_ticks(x.low, x.high)
    ticks = [Tick(at, chart.written(at)) for at in marks]
    horizontal_axis(drawing, Plot(left, TOP, right, bottom), x, ticks, chart.unit)
    if chart.marked is not None:
        at = x(chart.marked)
        line = {"stroke": "currentColor", "stroke_dasharray": "3 3"}
        drawing.add("line", x1=at, x2=at, y1=TOP, y2=bottom, **line)
    for i, row in enumerate(chart.rows):
        bars(drawing, chart, row, TOP + high * i, x)
    _legend.draw_legend(drawing, legend, foot, width)
    return drawing.svg()


def scale(chart: Bars, known: list[float], left: float, right: float) -> Scale:
    """From zero, or from below the smallest number on a logarithmic axis."""
    if chart.log:
        return Scale(*padded(known or [1.0], log=True), left, right, log=True)
    return Scale(0.0, max([*known, 0.0]) * 1.05 or 1.0, left, right)


def describe(chart: Bars) -> str:
    what = f": {', '.join(chart.series)}" if len(chart.series) > 1 else ""
    return f"{chart.unit} of {len(chart.rows)} entries{what}."


def bars(drawing: Drawing, chart: Bars, row: Bar, top: float, x: Scale) -> None:
    middle = top + BAR * len(row.values) / 2 + 4
    label = drawing.write(
        x.start - 8, middle, fitted(row.label, x.start - 10, SMALL), "end", font_size=SMALL
    )
    drawing.hint(label, row.label)
    for i, value in enumerate(row.values):
        if value is None:
            continue
        y, style = top + BAR * i, f"fill:{_legend.colour(i)}"
        long = max(x(value) - x.start, 1.0)
        drawing.add("rect", x=x.start, y=y, width=long, height=BAR - 2, style=style)
        drawing.write(x.start + long + 4, y + BAR - 2, chart.written(value), font_size=SMALL)
