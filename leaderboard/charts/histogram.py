"""How the accuracies of single episodes spread around their mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaderboard.charts._axes import Plot, Scale, Tick, horizontal_axis
from leaderboard.charts._svg import GAIN, SMALL, Drawing, fitted, percent

TOP, HEIGHT, FOOT = 34.0, 190.0, 44.0
BINS = 25
"""Of equal width over 0 to 100 %."""


@dataclass(frozen=True)
class Histogram:
    """values: accuracy of every episode; chance: 1 / n_way, None where it makes no sense."""

    title: str
    values: tuple[float, ...]
    chance: float | None = None


def draw(chart: Histogram, name: str, width: float = 360) -> str:
    """Bars of episodes over accuracy, lines at the mean and at chance."""
    counts, edges = np.histogram(chart.values, BINS, (0.0, 1.0))
    plot = Plot(8.0, TOP, width - 16, HEIGHT)
    x = Scale(0.0, 1.0, plot.left, plot.right)
    y = Scale(0.0, float(max(counts.max(), 1)), plot.bottom, plot.top)
    mean = float(np.mean(chart.values)) if chart.values else None
    drawing = Drawing(name, chart.title, describe(chart, mean), width, HEIGHT + FOOT)
    for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if count:
            bar(drawing, int(count), float(low), float(high), x, y)
    if chart.chance is not None:
        rule(drawing, plot, x(chart.chance), dashed=True)
    if mean is not None:
        rule(drawing, plot, x(mean), dashed=False)
    drawing.write(plot.left, 14, fitted(caption(chart, mean), width - 10, SMALL), font_size=SMALL)
    ticks = [Tick(at / 100, str(at)) for at in range(0, 101, 20)]
    horizontal_axis(drawing, plot, x, ticks, "accuracy of an episode (%)")
    return drawing.svg()


def describe(chart: Histogram, mean: float | None) -> str:
    if mean is None:
        return "No episodes."
    low, high = min(chart.values), max(chart.values)
    return (
        f"{len(chart.values)} episodes: mean {percent(mean)} %, from {percent(low)} to "
        f"{percent(high)} %."
    )


def caption(chart: Histogram, mean: float | None) -> str:
    if mean is None:
        return "no episodes"
    chance = "" if chart.chance is None else f", dashed: chance {percent(chart.chance, 0)}"
    return f"{len(chart.values)} episodes, mean {percent(mean)}{chance}"


def bar(drawing: Drawing, count: int, low: float, high: float, x: Scale, y: Scale) -> None:
    top = y(count)
    box = drawing.add(
        "rect",
        x=x(low) + 0.5,
        y=top,
        width=x(high) - x(low) - 1,
        height=y(0) - top,
        style=f"fill:{GAIN}",
        fill_opacity=0.7,
    )
    drawing.hint(box, f"{percent(low, 0)} to {percent(high, 0)} %: {count} episodes")


def rule(drawing: Drawing, plot: Plot, at: float, dashed: bool) -> None:
    drawing.add(
        "line",
        x1=at,
        x2=at,
        y1=plot.top - 8,
        y2=plot.bottom,
        stroke="currentColor",
        stroke_width=1.5,
        stroke_dasharray="4 3" if dashed else None,
    )
