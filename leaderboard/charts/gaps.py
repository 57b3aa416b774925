"""Paired gaps between two entries, one row a column of the board."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.charts._axes import Plot, Scale, Tick, horizontal_axis, padded, round_ticks
from leaderboard.charts._svg import GAIN, LOSS, SMALL, Drawing, fitted, interval, signed, widest

ROW, TOP, FOOT = 24.0, 28.0, 44.0
LABELS = 0.38
"""Share of the width that row labels may take."""


@dataclass(frozen=True)
class Gap:
    """Mean of A - B in one column and the ends of its paired 95 % interval, None if unknown.

    sure: whether it counts as a difference, where that is judged otherwise than by the interval.
    """

    label: str
    gap: float
    low: float | None
    high: float | None
    sure: bool | None = None

    @property
    def side(self) -> int:
        """1 and -1: a is surely ahead or behind; 0: nothing is sure."""
        if self.sure is not None:
            return (self.gap > 0) - (self.gap < 0) if self.sure else 0
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True)
class Gaps:
    """What entry a has over entry b. judged: what makes a row sure, above or below 0."""

    title: str
    a: str
    b: str
    rows: tuple[Gap, ...]
    judged: str = "the interval lies"


def draw(chart: Gaps, name: str, width: float = 720) -> str:
    """Right of the line: a is ahead; coloured where that is sure."""
    texts = [signed(row.gap) for row in chart.rows]
    left = min(widest([row.label for row in chart.rows], SMALL), LABELS * width) + 14
    right = width - widest(texts, SMALL) - 14
    bottom = TOP + ROW * len(chart.rows)
    ends = [v for row in chart.rows for v in (row.gap, row.low, row.high) if v is not None]
    low, high = padded([0.0, *ends])
    plot = Plot(left, TOP, right, bottom)
    drawing = Drawing(name, chart.title, describe(chart), width, bottom + FOOT)
    x = Scale(low, high, left, right)
    sides(drawing, chart, width)
    drawing.add(
        "line", x1=x(0), x2=x(0), y1=TOP, y2=bottom, stroke="currentColor", stroke_dasharray="3 3"
    )
    ticks = [Tick(at, f"{100 * at:g}".replace("-", "−")) for at in points(low, high)]
    horizontal_axis(drawing, plot, x, ticks, "gap in points, paired 95 % interval")
    for i, row in enumerate(chart.rows):
        y = TOP + ROW * (i + 0.5)
        label = drawing.write(
            left - 10, y + 4, fitted(row.label, left - 12, SMALL), "end", font_size=SMALL
        )
        drawing.hint(label, row.label)
        mark(drawing, row, x, y)
        drawing.write(width, y + 4, texts[i], "end", font_size=SMALL)
    return drawing.svg()


def points(low: float, high: float) -> list[float]:
    """Ticks that are round in points."""
    return [at / 100 for at in round_ticks(100 * low, 100 * high)]


def describe(chart: Gaps) -> str:
    ahead, behind = (sum(row.side == side for row in chart.rows) for side in (1, -1))
    return (
        f"{chart.a} minus {chart.b} in {len(chart.rows)} rows: {chart.judged} above 0 in "
        f"{ahead} and below it in {behind}."
    )


def sides(drawing: Drawing, chart: Gaps, width: float) -> None:
    """Who is ahead on which side of the line."""
    room = width / 2 - 6
    drawing.write(0, 14, fitted(f"← {chart.b} ahead", room, SMALL), font_size=SMALL)
    drawing.write(width, 14, fitted(f"{chart.a} ahead →", room, SMALL), "end", font_size=SMALL)


def mark(drawing: Drawing, row: Gap, x: Scale, y: float) -> None:
    colour = {1: GAIN, 0: "currentColor", -1: LOSS}[row.side]
    if row.low is not None and row.high is not None:
        drawing.add(
            "line",
            x1=x(row.low),
            x2=x(row.high),
            y1=y,
            y2=y,
            style=f"stroke:{colour}",
            stroke_width=2,
        )
    dot = drawing.add("circle", cx=x(row.gap), cy=y, r=4, style=f"fill:{colour}")
    drawing.hint(dot, f"{row.label}: {signed(row.gap)} points{interval(row.low, row.high)}")
