"""Scales from values to pixels, round ticks, and the frame of a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.charts._svg import SMALL, Drawing, extent, fitted, widest

TICKS = 5
PADDING = 0.06
"""Of the range of the values, left free on both sides."""


@dataclass(frozen=True)
class Scale:
    """Values low..high on pixels start..end, by their logarithm if `log`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True)
class Tick:
    """A place on an axis and what stands beside it."""

    at: float
    label: str


@dataclass(frozen=True)
class Plot:
    """The frame of a plot in pixels."""

    left: float
    top: float
    right: float
    bottom: float


def padded(values: Sequence[float], log: bool = False) -> tuple[float, float]:
    """A range that holds the values with some room, never empty."""
    low, high = (math.log(v) if log else v for v in (min(values), max(values)))
    half = max(high - low, math.log(2) if log else 0.01) * (0.5 + PADDING)
    ends = (low + high) / 2 - half, (low + high) / 2 + half
    return (math.exp(ends[0]), math.exp(ends[1])) if log else ends


def round_ticks(low: float, high: float, wanted: int = TICKS) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten in low..high, about as many as wanted."""
    rough = (high - low) / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten in low..high; powers alone over more than two decades."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 100 else (1,)
    return [v for p in powers for m in steps if low <= (v := m * 10.0**p) <= high]


def percents(low: float, high: float) -> list[Tick]:
    """Round ticks of a range of fractions, in percent."""
    ticks = [100 * at for at in round_ticks(low, high)]
    digits = 0 if all(abs(at - round(at)) < 1e-6 for at in ticks) else 1
    return [Tick(at / 100, f"{at:.{digits}f}") for at in ticks]


def short_number(value: float) -> str:
    """e.g. 500, 20k, 1.5M, 2e15."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= value < 1000 * size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def vertical_axis(drawing: Drawing, plot: Plot, scale: Scale, ticks: Sequence[Tick]) -> None:
    """Labels left of the plot, faint lines across it."""
    for tick in ticks:
        y = scale(tick.at)
        drawing.add(
            "line", x1=plot.left, x2=plot.right, y1=y, y2=y, stroke="currentColor", opacity=0.15
        )
        drawing.write(plot.left - 6, y + 4, tick.label, "end", font_size=SMALL)


def horizontal_axis(
    drawing: Drawing, plot: Plot, scale: Scale, ticks: Sequence[Tick], label: str
) -> None:
    """A line below the plot with ticks that have room, and its label below them."""
    line = {"y1": plot.bottom, "y2": plot.bottom, "stroke": "currentColor", "opacity": 0.6}
    drawing.add("line", x1=plot.left, x2=plot.right, **line)
    free = -math.inf
    for tick in sorted(ticks, key=lambda tick: scale(tick.at)):
        x, half = scale(tick.at), extent(tick.label, SMALL) / 2
        if x - half < free:
            continue
        free = x + half + 4
        drawing.add(
            "line",
            x1=x,
            x2=x,
            y1=plot.bottom,
            y2=plot.bottom + 4,
            stroke="currentColor",
            opacity=0.6,
        )
        drawing.write(x, plot.bottom + 17, tick.label, "middle", font_size=SMALL)
    room = plot.right
    drawing.write(
        (plot.left + plot.right) / 2,
        plot.bottom + 34,
        fitted(label, room, SMALL),
        "middle",
        font_size=SMALL,
    )


def left_margin(ticks: Sequence[Tick]) -> float:
    """Room for the labels of a vertical axis."""
    return widest([tick.label for tick in ticks], SMALL) + 10
