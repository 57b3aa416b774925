"""Paired gaps between two entries, one row for each column of the board or each method."""

from dataclasses import dataclass

from fsbench.core import plotting
from fsbench.core.plotting import GAIN, GUIDE, INK, LOSS, PAPER, Drawing, fit_text, signed

ROW, TOP, FOOT = 24.0, 28.0, 44.0
LABEL_SHARE = 0.38
"""Share of the width that row labels may take."""


@dataclass(frozen=True)
class GapRow:
    """Mean of a - b in one row and the ends of its paired 95 % interval, None if unknown.

    significant: whether it counts as a difference, where a test and not the interval says so;
    single: drawn hollow, because it is of one pretraining seed.
    """

    label: str
    gap: float
    low: float | None
    high: float | None
    significant: bool | None = None
    single: bool = False

    @property
    def side(self) -> int:
        """1 or -1 where a is significantly ahead or behind, else 0."""
        if self.significant is not None:
            return (self.gap > 0) - (self.gap < 0) if self.significant else 0
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True)
class GapChart:
    """Advantage of entry a over entry b. criterion: what makes a row lie above or below 0."""

    title: str
    a: str
    b: str
    rows: tuple[GapRow, ...]
    criterion: str = "the interval lies"

    @property
    def description(self) -> str:
        ahead, behind = (sum(row.side == side for row in self.rows) for side in (1, -1))
        return (
            f"{self.a} minus {self.b} in {len(self.rows)} rows: {self.criterion} above 0 in "
            f"{ahead} and below it in {behind}."
        )


@plotting.style()
def draw(chart: GapChart, width: float = 720) -> Drawing:
    """Return points with intervals, a ahead on the right; coloured where significant."""
    labels = [row.label for row in chart.rows]
    left = min(plotting.widest(labels), LABEL_SHARE * width) + 14
    right = plotting.widest([signed(row.gap) for row in chart.rows]) + 14
    height = TOP + ROW * max(len(chart.rows), 1) + FOOT
    drawing = Drawing.create(chart.title, chart.description, width, height)
    axes = drawing.add_axes(left, TOP, right, FOOT)
    ends = [v for row in chart.rows for v in (row.gap, row.low, row.high) if v is not None]
    axes.set_xlim(*plotting.padded([100 * v for v in (0.0, *plotting.clip_range(ends))]))
    single = "; hollow: one seed" if any(row.single for row in chart.rows) else ""
    axes.set_xlabel(f"gap in points, paired 95 % interval{single}")
    plotting.label_rows(drawing, axes, labels, left - 12)
    axes.axvline(0, **GUIDE)
    for i, row in enumerate(chart.rows):
        colour = {1: GAIN, 0: INK, -1: LOSS}[row.side]
        if row.low is not None and row.high is not None:
            axes.plot([100 * row.low, 100 * row.high], [i, i], color=colour)
        for side, edge in zip(("left", "right"), axes.get_xlim(), strict=True):
            reach = row.low if side == "left" else row.high
            reach = 100 * (row.gap if reach is None else reach)
            if (reach < edge) if side == "left" else (reach > edge):
                plotting.mark_clipped(axes, edge, i, colour, side)
        (mark,) = axes.plot(100 * row.gap, i, "o", color=colour)
        if row.single:
            mark.set(markerfacecolor=PAPER)
        hint = f"{signed(row.gap)} points{plotting.interval(row.low, row.high)}"
        drawing.add_hint(mark, f"{row.label}: {hint}")
        drawing.write(width - 2, TOP + ROW * (i + 0.5) + 4, signed(row.gap), ha="right")
    room = width / 2 - 66
    drawing.write(2, 14, f"← {fit_text(chart.b, room)} ahead")
    drawing.write(width - 2, 14, f"{fit_text(chart.a, room)} ahead →", ha="right")
    return drawing
