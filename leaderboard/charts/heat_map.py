"""Heat map of gains over the control: methods down, targets across."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.charts._svg import GAIN, LOSS, SMALL, Drawing, fitted, interval, signed, widest

ROW, HEAD, LEGEND = 26.0, 20.0, 46.0
"""Heights in pixels."""
LABELS = 0.36
"""Share of the width that row labels may take."""
SLIMMEST, WIDEST = 16.0, 84.0
"""Widths of a cell."""
STRONGEST = 0.62
"""Opacity of the largest gain: black and white text both stay readable on it."""
Row = tuple[float | None, ...]


@dataclass(frozen=True)
class HeatMap:
    """values: gain of each row (method) in each column (target), None where not measured.

    low, high: ends of its 95 % interval, of the same shape; None where unknown.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[Row, ...]
    low: tuple[Row, ...]
    high: tuple[Row, ...]

    @property
    def largest(self) -> float:
        """The largest absolute gain: the end of the colour scale."""
        return max((abs(v) for row in self.values for v in row if v is not None), default=0) or 0.01


@dataclass(frozen=True)
class Layout:
    """left: where cells begin; cell: their width; top: where they begin; upright: rotated heads."""

    left: float
    cell: float
    top: float
    upright: bool


def draw(chart: HeatMap, name: str, width: float = 720) -> str:
    """Blue for a gain, orange for a loss, a dot where the 95 % interval excludes 0."""
    at = layout(chart, width)
    right = at.left + at.cell * len(chart.columns)
    bottom = at.top + ROW * len(chart.rows)
    drawing = Drawing(name, chart.title, describe(chart), max(width, right + 1), bottom + LEGEND)
    for j, column in enumerate(chart.columns):
        head(drawing, at, j, column)
    for i, row in enumerate(chart.rows):
        y = at.top + ROW * i
        label = drawing.write(at.left - 6, y + 17, fitted(row, at.left - 8), "end")
        drawing.hint(label, row)
        for j in range(len(chart.columns)):
            cell(drawing, chart, at, i, j)
    legend(drawing, chart.largest, at.left if right - at.left > 220 else 8.0, bottom)
    return drawing.svg()


def layout(chart: HeatMap, width: float) -> Layout:
    left = min(widest(chart.rows), LABELS * width) + 10
    cell = min(max((width - left - 1) / max(len(chart.columns), 1), SLIMMEST), WIDEST)
    longest = widest(chart.columns, SMALL)
    upright = longest + 6 > cell
    return Layout(left, cell, min(longest, 150.0) + 12 if upright else HEAD, upright)


def describe(chart: HeatMap) -> str:
    marked = sum(clear(*ends) for ends in pairs(chart))
    return (
        f"Gain over the control in points: {len(chart.rows)} methods by {len(chart.columns)} "
        f"targets; the 95 % interval excludes 0 in {marked} cells."
    )


def pairs(chart: HeatMap) -> list[tuple[float | None, float | None]]:
    rows = zip(chart.low, chart.high, strict=True)
    return [ends for low, high in rows for ends in zip(low, high, strict=True)]


def clear(low: float | None, high: float | None) -> bool:
    """Whether an interval is known and excludes 0."""
    return low is not None and high is not None and (low > 0 or high < 0)


def head(drawing: Drawing, at: Layout, j: int, column: str) -> None:
    x = at.left + at.cell * (j + 0.5)
    if not at.upright:
        drawing.write(x, at.top - 7, column, "middle", font_size=SMALL)
        return
    text = fitted(column, at.top - 10, SMALL)
    turned = f"rotate(-90 {x + 4:.2f} {at.top - 5:.2f})"
    label = drawing.write(x + 4, at.top - 5, text, font_size=SMALL, transform=turned)
    drawing.hint(label, column)


def cell(drawing: Drawing, chart: HeatMap, at: Layout, i: int, j: int) -> None:
    value, low, high = chart.values[i][j], chart.low[i][j], chart.high[i][j]
    x, y = at.left + at.cell * j, at.top + ROW * i
    where = {"x": x + 0.5, "y": y + 0.5, "width": at.cell - 1, "height": ROW - 1}
    if value is None:
        drawing.add("rect", **where, fill="none", stroke="currentColor", stroke_opacity=0.15)
        return
    colour = GAIN if value > 0 else LOSS
    strength = STRONGEST * abs(value) / chart.largest
    box = drawing.add("rect", **where, style=f"fill:{colour}", fill_opacity=strength)
    drawing.hint(
        box, f"{chart.rows[i]}, {chart.columns[j]}: {signed(value)} points{interval(low, high)}"
    )
    shown = at.cell >= 44
    if shown:
        text = signed(value, 1 if at.cell < 52 else 2)
        drawing.write(
            x + at.cell / 2, y + 17, text, "middle", font_size=SMALL, pointer_events="none"
        )
    if clear(low, high):
        cx, cy = (x + at.cell - 5, y + 6) if shown else (x + at.cell / 2, y + ROW / 2)
        drawing.add("circle", cx=cx, cy=cy, r=2.2, fill="currentColor", pointer_events="none")


def legend(drawing: Drawing, largest: float, x: float, bottom: float) -> None:
    """The colour scale from the largest loss to the largest gain."""
    steps, size = 11, 10.0
    y = bottom + 10
    for k in range(steps):
        part = 2 * k / (steps - 1) - 1
        drawing.add(
            "rect",
            x=x + size * k,
            y=y,
            width=size,
            height=size,
            style=f"fill:{GAIN if part > 0 else LOSS}",
            fill_opacity=STRONGEST * abs(part),
        )
    ends = f"{signed(-largest, 1)} to {signed(largest, 1)} points"
    drawing.write(x + size * steps + 8, y + 9, ends, font_size=SMALL)
    drawing.add("circle", cx=x + 3, cy=y + 24, r=2.2, fill="currentColor")
    drawing.write(x + 12, y + 28, "95 % interval excludes 0", font_size=SMALL)
