"""Accuracy against cost, with the entries that none beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from leaderboard.charts._axes import (
    Plot,
    Scale,
    Tick,
    horizontal_axis,
    left_margin,
    log_ticks,
    padded,
    percents,
    short_number,
    vertical_axis,
)
from leaderboard.charts._labels import Box, Labels, along, around
from leaderboard.charts._svg import GAIN, SMALL, Drawing, interval, number, percent

HEIGHT, FOOT = 320.0, 44.0


@dataclass(frozen=True)
class Point:
    """An entry: cost > 0, mean accuracy and the ends of its 95 % interval."""

    label: str
    cost: float
    accuracy: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Pareto:
    """cost: what the points cost, with its unit, e.g. 'optimizer steps'."""

    title: str
    cost: str
    points: tuple[Point, ...]


def front(points: Sequence[Point]) -> list[Point]:
    """Points that no other matches in both and beats in one, the cheapest first."""
    found: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, -p.accuracy)):
        if (
            not found
            or point.accuracy > found[-1].accuracy
            or ((point.cost, point.accuracy) == (found[-1].cost, found[-1].accuracy))
        ):
            found.append(point)
    return found


def draw(chart: Pareto, name: str, width: float = 720) -> str:
    """Cost on a logarithmic axis, percent upwards, the front as a stair."""
    ends = [v for p in chart.points for v in (p.accuracy, p.low, p.high) if v is not None]
    low, high = padded(ends or [0.0, 1.0])
    costs = padded([p.cost for p in chart.points] or [1.0], log=True)
    ticks = percents(low, high)
    plot = Plot(left_margin(ticks), 24.0, width - 12, HEIGHT)
    best = front(chart.points)
    drawing = Drawing(name, chart.title, describe(chart, best), width, HEIGHT + FOOT)
    x = Scale(*costs, plot.left, plot.right, log=True)
    y = Scale(low, high, plot.bottom, plot.top)
    drawing.write(0, 12, "accuracy (%)", font_size=SMALL)
    vertical_axis(drawing, plot, y, ticks)
    marks = [Tick(at, short_number(at)) for at in log_ticks(*costs)]
    horizontal_axis(drawing, plot, x, marks, chart.cost)
    stair(drawing, corners(best, x, y, plot))
    labels = Labels(plot, obstacles(chart, best, x, y, plot))
    for point in [*best, *(p for p in chart.points if p not in best)]:
        mark(drawing, point, x, y, point in best)
        labels.place(drawing, point.label, x(point.cost), y(point.accuracy))
    return drawing.svg()


def describe(chart: Pareto, best: Sequence[Point]) -> str:
    names = ", ".join(point.label for point in best)
    return f"Accuracy in percent against {chart.cost}; none beats in both: {names}."


def corners(best: Sequence[Point], x: Scale, y: Scale, plot: Plot) -> list[tuple[float, float]]:
    """The accuracy that a budget buys: level to the next point, then up."""
    at = [(x(p.cost), y(p.accuracy)) for p in best]
    found = at[:1]
    for here, there in pairwise(at):
        found += [(there[0], here[1]), there]
    return found + [(plot.right, py) for _, py in at[-1:]]


def stair(drawing: Drawing, path: Sequence[tuple[float, float]]) -> None:
    points = " ".join(f"{number(px)},{number(py)}" for px, py in path)
    drawing.add("polyline", points=points, fill="none", style=f"stroke:{GAIN}", stroke_width=1.5)


def obstacles(chart: Pareto, best: Sequence[Point], x: Scale, y: Scale, plot: Plot) -> list[Box]:
    """What no label may hide: marks, intervals and the front."""
    marks = [around(x(p.cost), y(p.accuracy)) for p in chart.points]
    intervals = [
        along(x(p.cost), y(p.low), x(p.cost), y(p.high))
        for p in chart.points
        if p.low is not None and p.high is not None
    ]
    steps = [along(*a, *b) for a, b in pairwise(corners(best, x, y, plot))]
    return marks + intervals + steps


def mark(drawing: Drawing, point: Point, x: Scale, y: Scale, best: bool) -> None:
    px, py = x(point.cost), y(point.accuracy)
    colour = GAIN if best else "currentColor"
    if point.low is not None and point.high is not None:
        ends = {"x1": px, "x2": px, "y1": y(point.low), "y2": y(point.high)}
        drawing.add("line", **ends, style=f"stroke:{colour}", opacity=0.5)
    style = f"fill:{colour}" if best else "fill:none;stroke:currentColor"
    dot = drawing.add("circle", cx=px, cy=py, r=4, style=style, pointer_events="all")
    where = f"{short_number(point.cost)}, {percent(point.accuracy)} %"
    drawing.hint(dot, f"{point.label}: {where}{interval(point.low, point.high)}")
