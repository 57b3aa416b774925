"""Heat map of gains over the control: methods down, targets across."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fsbench.core import plotting
from fsbench.core.plotting import FONT_SIZE, GAIN, INK, LINE_HEIGHT, LOSS, Drawing, fit_text, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, HEAD, LONGEST_HEAD, FOOT = 26.0, 20.0, 150.0, 46.0
"""Heights in pixels: of a row, of the names of the columns, and of a legend with one line."""
LABEL_SHARE = 0.36
"""Share of the width that row labels may take."""
SLIMMEST, WIDEST, ROOM_FOR_NUMBERS, ROOM_FOR_DECIMALS = 16.0, 132.0, 46.0, 56.0
"""Widths of a cell."""
RIM = 3.0
"""Width of the outline of a hollow cell."""
STRONGEST = 0.62
"""Opacity of the largest gain; text stays readable on it in both schemes."""
Values = tuple[float | None, ...]


@dataclass(frozen=True)
class HeatMap:
    """values: gain of each row (method) in each column (target), None where not measured.

    low, high: ends of its 95 % interval, of the same shape; None where unknown. single: rows of one
    pretraining seed, whose cells are drawn hollow.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[Values, ...]
    low: tuple[Values, ...]
    high: tuple[Values, ...]
    single: frozenset[int] = frozenset()

    @property
    def largest(self) -> float:
        """The end of the colour scale: the largest absolute gain that is no outlier."""
        sizes = [abs(v) for row in self.values for v in row if v is not None]
        return plotting.clip_range(sizes)[1] or 0.01

    @property
    def has_outliers(self) -> bool:
        """Return whether gains lie beyond the end of the colour scale."""
        return any(v is not None and abs(v) > self.largest for row in self.values for v in row)

    def fold_notes(self, room: float) -> list[str]:
        """Return what the marks mean, on lines of this width where each note fits one."""
        lines = ["95 % interval excludes 0"]
        notes = ["hollow: one seed"] if self.single else []
        for note in [*notes, *(["triangle: off scale"] if self.has_outliers else [])]:
            longer = f"{lines[-1]}; {note}"
            if plotting.text_width(longer) <= room:
                lines[-1] = longer
            else:
                lines.append(note)
        return lines

    @property
    def description(self) -> str:
        return (
            f"Gain over the control in points: {len(self.rows)} methods by {len(self.columns)} "
            f"targets; the 95 % interval excludes 0 in {len([*self.significant()])} cells."
        )

    def significant(self) -> Iterator[tuple[int, int]]:
        """Yield row and column of the cells whose interval is known and excludes 0."""
        for i, (lows, highs) in enumerate(zip(self.low, self.high, strict=True)):
            for j, (low, high) in enumerate(zip(lows, highs, strict=True)):
                if low is not None and high is not None and (low > 0 or high < 0):
                    yield i, j


@plotting.style()
def draw(chart: HeatMap, width: float = 720) -> Drawing:
    """Return blue cells for gains, orange ones for losses, a dot where the interval excludes 0."""
    left = min(plotting.widest(chart.rows), LABEL_SHARE * width) + 12
    cell = min(max((width - left - 1) / max(len(chart.columns), 1), SLIMMEST), WIDEST)
    longest = plotting.widest(chart.columns)
    upright = longest + 6 > cell
    top = min(longest, LONGEST_HEAD) + 12 if upright else HEAD
    right_end = left + cell * max(len(chart.columns), 1)
    wide = max(width, right_end + 1)
    legend = left if wide - left > 330 else 8.0
    notes = chart.fold_notes(wide - legend - 14)
    foot = FOOT + LINE_HEIGHT * (len(notes) - 1)
    height = top + ROW * max(len(chart.rows), 1) + foot
    drawing = Drawing.create(chart.title, chart.description, wide, height)
    axes = drawing.add_axes(left, top, wide - right_end, foot)
    axes.set_xlim(-0.5, max(len(chart.columns), 1) - 0.5)
    plotting.label_rows(drawing, axes, chart.rows, left - 12)
    axes.spines.bottom.set_visible(False)
    axes.tick_params(axis="x", length=0, labelbottom=False, labeltop=True, pad=5)
    room = top - 10 if upright else cell
    axes.set_xticks(range(len(chart.columns)), [fit_text(name, room) for name in chart.columns])
    for label, name in zip(axes.get_xticklabels(), chart.columns, strict=True):
        drawing.add_hint(label, name)
        if upright:
            label.set(rotation=90, rotation_mode="anchor", ha="left", va="center")
    for i, row in enumerate(chart.values):
        for j, value in enumerate(row):
            add_cell(drawing, axes, chart, i, j, value, cell)
    corner = cell >= ROOM_FOR_NUMBERS
    dots = [(j + (0.5 - 5 / cell) * corner, i - 0.27 * corner) for i, j in chart.significant()]
    axes.plot([x for x, _ in dots], [y for _, y in dots], "o", color=INK, markersize=4.4)
    add_clipped(axes, chart, corner, cell)
    add_scale(drawing, chart.largest, legend, foot, notes)
    return drawing


def add_cell(
    drawing: Drawing, axes: "Axes", chart: HeatMap, i: int, j: int, value: float | None, cell: float
) -> None:
    """Draw one cell: its colour, its number where that has room, and its hint."""
    from matplotlib.patches import Rectangle

    gap_x, gap_y = 0.5 / cell, 0.5 / ROW
    corner, size = (j - 0.5 + gap_x, i - 0.5 + gap_y), (1 - 2 * gap_x, 1 - 2 * gap_y)
    if value is None:
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=INK, alpha=0.15))
        return
    colour, alpha = GAIN if value > 0 else LOSS, STRONGEST * min(abs(value) / chart.largest, 1)
    options: dict[str, Any] = {"facecolor": colour, "alpha": alpha, "linewidth": 0}
    if i in chart.single:
        (x, y), (wide, high), rim = corner, size, RIM / 2
        corner = x + rim / cell, y + rim / ROW
        size = wide - 2 * rim / cell, high - 2 * rim / ROW
        options = {"facecolor": "none", "edgecolor": colour, "alpha": alpha, "linewidth": RIM}
    box = axes.add_patch(Rectangle(corner, *size, **options))
    drawing.add_hint(
        box,
        f"{chart.rows[i]}, {chart.columns[j]}: {signed(value)} points"
        f"{plotting.interval(chart.low[i][j], chart.high[i][j])}",
    )
    if cell >= ROOM_FOR_NUMBERS:
        text = signed(value, 1 if cell < ROOM_FOR_DECIMALS else 2)
        axes.text(j, i + 0.36 * FONT_SIZE / ROW, text, ha="center", va="baseline")


def add_clipped(axes: "Axes", chart: HeatMap, corner: bool, cell: float) -> None:
    """Mark the gains beyond the colour scale by triangles."""
    for i, row in enumerate(chart.values):
        for j, value in enumerate(row):
            if value is not None and abs(value) > chart.largest:
                x, y = j - (0.5 - 6 / cell) * corner, i + (0 if corner else 0.27)
                marker = "^" if value > 0 else "v"
                axes.plot(x, y, marker, color=INK, markersize=5)


def add_scale(
    drawing: Drawing, largest: float, left: float, foot: float, notes: Sequence[str]
) -> None:
    """Draw the colour scale below the map, and notes under it, in the lowest `foot` pixels."""
    steps, size = 11, 10.0
    _, height = drawing.size
    axes = drawing.add_axes(left, height - foot + 10, drawing.size[0] - left - 120, foot - 20)
    axes.set_axis_off()
    shares = [2 * k / (steps - 1) - 1 for k in range(steps)]
    colours = [(GAIN if share > 0 else LOSS, STRONGEST * abs(share)) for share in shares]
    axes.bar(range(steps), 1, 1, color=colours)
    axes.set(xlim=(-0.5, 12 - 0.5), ylim=(0, 1))
    y = height - foot + 19
    ends = f"{signed(-largest, 1)} to {signed(largest, 1)} points"
    drawing.write(left + size * steps + 8, y, ends)
    axes.plot(-0.2, -1.4, "o", color=INK, markersize=4.4, clip_on=False)
    for i, note in enumerate(notes):
        room = drawing.size[0] - left - 14
        drawing.write(left + 12, y + 19 + LINE_HEIGHT * i, fit_text(note, room))
