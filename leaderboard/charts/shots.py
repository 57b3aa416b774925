"""Accuracy against shots: one line an entry, its 95 % interval as a band."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.charts import _legend
from leaderboard.charts._axes import (
    Plot,
    Scale,
    Tick,
    horizontal_axis,
    left_margin,
    padded,
    percents,
    vertical_axis,
)
from leaderboard.charts._svg import SMALL, Drawing, interval, number, percent

HEIGHT, FOOT = 260.0, 44.0


@dataclass(frozen=True)
class Curve:
    """Means of one entry at increasing shots; low, high: ends of the 95 % intervals, or ()."""

    label: str
    shots: tuple[int, ...]
    means: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Shots:
    title: str
    curves: tuple[Curve, ...]


def draw(chart: Shots, name: str, width: float = 720) -> str:
    """Shots on a logarithmic axis, percent upwards."""
    labels = [curve.label for curve in chart.curves]
    every = [v for c in chart.curves for v in (*c.means, *c.low, *c.high)] or [0.0, 1.0]
    shots = sorted({k for curve in chart.curves for k in curve.shots}) or [1]
    low, high = padded(every)
    ticks = percents(low, high)
    plot = Plot(left_margin(ticks), 24.0, width - 12, HEIGHT)
    bottom = HEIGHT + FOOT
    drawing = Drawing(
        name, chart.title, describe(chart, shots), width, bottom + _legend.height(labels, width)
    )
    x = Scale(*padded([float(k) for k in shots], log=True), plot.left, plot.right, log=True)
    y = Scale(low, high, plot.bottom, plot.top)
    drawing.write(0, 12, "accuracy (%)", font_size=SMALL)
    vertical_axis(drawing, plot, y, ticks)
    horizontal_axis(drawing, plot, x, [Tick(k, str(k)) for k in shots], "shots (images a class)")
    for i, curve in enumerate(chart.curves):
        band(drawing, curve, x, y, i)
    for i, curve in enumerate(chart.curves):
        line(drawing, curve, x, y, i)
    _legend.draw_legend(drawing, labels, bottom, width)
    return drawing.svg()


def describe(chart: Shots, shots: list[int]) -> str:
    best = max(chart.curves, key=lambda c: c.means[-1] if c.means else 0.0, default=None)
    most = f" At most shots {best.label} is highest." if best and len(chart.curves) > 1 else ""
    where = ", ".join(map(str, shots))
    return f"Mean accuracy in percent of {len(chart.curves)} entries at {where} shots.{most}"


def band(drawing: Drawing, curve: Curve, x: Scale, y: Scale, i: int) -> None:
    if not curve.low:
        return
    ends = [*zip(curve.shots, curve.high, strict=True)]
    ends += reversed([*zip(curve.shots, curve.low, strict=True)])
    points = " ".join(f"{number(x(k))},{number(y(v))}" for k, v in ends)
    drawing.add("polygon", points=points, style=f"fill:{_legend.colour(i)}", fill_opacity=0.15)


def line(drawing: Drawing, curve: Curve, x: Scale, y: Scale, i: int) -> None:
    at = [(x(k), y(v)) for k, v in zip(curve.shots, curve.means, strict=True)]
    colour = _legend.colour(i)
    drawing.add(
        "polyline",
        points=" ".join(f"{number(px)},{number(py)}" for px, py in at),
        fill="none",
        style=f"stroke:{colour}",
        stroke_width=2,
        stroke_dasharray=_legend.dash(i),
    )
    ends = zip(curve.low, curve.high, strict=True) if curve.low else [(None, None)] * len(at)
    for (px, py), k, mean, (low, high) in zip(at, curve.shots, curve.means, ends, strict=True):
        dot = drawing.add("circle", cx=px, cy=py, r=3.5, style=f"fill:{colour}")
        drawing.hint(dot, f"{curve.label}, {k} shots: {percent(mean)} %{interval(low, high)}")
