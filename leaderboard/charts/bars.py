"""Numbers of every entry as bars, one or a few for each entry."""

from collections.abc import Callable
from dataclasses import dataclass

from fsbench.core import plotting
from fsbench.core.plotting import GUIDE, SERIES, Drawing

BAR, SPACE, TOP, FOOT = 13.0, 9.0, 8.0, 44.0
LABEL_SHARE = 0.38
"""Share of the width that row labels may take."""


@dataclass(frozen=True)
class Bar:
    """An entry: a number for each series, None where unknown."""

    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class BarChart:
    """unit: of all numbers, for the axis. log: for positive numbers of many sizes. reference: a
    number that a dashed line shows. write: how a number is written.
    """

    title: str
    unit: str
    series: tuple[str, ...]
    rows: tuple[Bar, ...]
    log: bool = False
    reference: float | None = None
    write: Callable[[float], str] = plotting.short_number

    @property
    def description(self) -> str:
        names = f": {', '.join(self.series)}" if len(self.series) > 1 else ""
        return f"{self.unit} of {len(self.rows)} entries{names}."


@plotting.style()
def draw(chart: BarChart, width: float = 720) -> Drawing:
    """Return horizontal bars from the left, each followed by its number."""
    labels = [row.label for row in chart.rows]
    values = [v for row in chart.rows for v in row.values if v is not None]
    legend = chart.series if len(chart.series) > 1 else ()
    row_height = BAR * len(chart.series) + SPACE
    top = TOP + plotting.legend_height(legend, width)
    height = top + row_height * max(len(chart.rows), 1) + FOOT
    left = min(plotting.widest(labels), LABEL_SHARE * width) + 14
    drawing = Drawing.create(chart.title, chart.description, width, height)
    right = plotting.widest([chart.write(v) for v in values]) + 12
    axes = drawing.add_axes(left, top, right, FOOT)
    reference = () if chart.reference is None else (chart.reference,)
    most = max((plotting.clip_range(values)[1], *reference)) or 1.0
    limits = plotting.padded([*values, *reference], log=True) if chart.log else (0.0, most)
    axes.set_xlim(*limits)
    if chart.log:
        plotting.set_log_scale(axes)
    axes.set_xlabel(chart.unit)
    plotting.label_rows(drawing, axes, labels, left - 12)
    if chart.reference is not None:
        axes.axvline(chart.reference, **GUIDE)
    start, thickness = axes.get_xlim()[0], BAR / row_height
    for i, row in enumerate(chart.rows):
        for j, value in enumerate(row.values):
            if value is not None:
                y = i + thickness * (j - (len(row.values) - 1) / 2)
                colour = SERIES[j % len(SERIES)]
                end = min(value, limits[1])
                axes.barh(y, end - start, thickness * 0.82, left=start, color=colour)
                if end < value:
                    plotting.mark_clipped(axes, end, y, colour, "right")
                axes.annotate(
                    chart.write(value),
                    (end, y),
                    (4 if end == value else 8, 0),
                    textcoords="offset points",
                    va="center_baseline",
                )
    handles = [axes.plot([], [], color=SERIES[j % len(SERIES)])[0] for j in range(len(legend))]
    plotting.add_legend(axes, handles, legend, width, left)
    return drawing
