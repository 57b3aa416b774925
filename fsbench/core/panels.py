"""Curves and bars of one or several panels: records that become figures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from fsbench.core import plotting
from fsbench.core.plotting import Drawing, fit_text
from fsbench.core.specs import Frozen

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

PANEL = 380.0, 250.0
"""Width and height of a panel without its legend, in pixels."""
MOST_COLUMNS = 3
MARKED = 12
"""Most values of a curve of which each has a mark."""
LINEAR = 0.1
"""Around zero, where a symlog axis is linear."""


class Curve(Frozen):
    """Values over a common axis, measured or (published) a paper's.

    low, high: a range around every value, where there is one.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    published: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


class Panel(Frozen):
    """Curves over the same axes; x and y name the axes with their units.

    ticks: names of the positions 1, 2, ...; bars: every curve is one value, its label its name.
    """

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    y_scale: Literal["linear", "log", "symlog"] = "linear"
    from_zero: bool = False
    ticks: tuple[str, ...] = ()
    bars: bool = False

    @property
    def description(self) -> str:
        labels = ", ".join(curve.label for curve in self.curves)
        return f"{self.title}: {self.y} against {self.x}: {labels}."


@plotting.style()
def draw_panels(panels: Sequence[Panel], title: str, width: float | None = None) -> Drawing:
    """Return panels in up to three columns, each with its legend above; `title` may be empty.

    A panel whose title is that of the whole drawing shows none: the page around it does.
    """
    columns = max(1, min(MOST_COLUMNS, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    panel_width = PANEL[0] if width is None else width / columns
    legend = max((panel_legend_height(panel, panel_width - 60) for panel in panels), default=0.0)
    titled = any(panel.title != title for panel in panels)
    extra = legend + plotting.LINE_HEIGHT * titled
    height = (PANEL[1] + extra) * rows + plotting.LINE_HEIGHT * bool(titled and title)
    description = " ".join(panel.description for panel in panels)
    name = title or next((panel.title for panel in panels), "figure")
    width = panel_width * columns
    drawing = Drawing.create(name, description, width, height, layout="constrained")
    axes = list(drawing.figure.subplots(rows, columns, squeeze=False).flat)
    for panel, ax in zip(panels, axes, strict=False):
        fill_panel(drawing, ax, panel, panel_width)
        if titled:
            title_text = fit_text(panel.title, panel_width - 60)
            ax.set_title(title_text, pad=8 + panel_legend_height(panel, panel_width - 60))
    for ax in axes[len(panels) :]:
        ax.remove()
    if titled and title:
        drawing.figure.suptitle(fit_text(title, width - 20), fontsize=plotting.FONT_SIZE)
    return drawing


def panel_legend_height(panel: Panel, width: float) -> float:
    """Return the height of the legend above a panel."""
    labels = [curve.label for curve in panel.curves]
    return 0.0 if panel.bars else plotting.legend_height(labels, width)


def fill_panel(drawing: Drawing, axes: "Axes", panel: Panel, width: float = PANEL[0]) -> None:
    """Draw a panel into axes; published values are dashed."""
    axes.set_xlabel(fit_text(panel.x, width - 60))
    axes.set_ylabel(fit_text(panel.y, PANEL[1] - 60))
    axes.grid(axis="y")
    if panel.bars:
        add_bars(drawing, axes, panel)
        return
    curves = [add_curve(drawing, axes, panel, i) for i in range(len(panel.curves))]
    set_scales(axes, panel)
    labels = [curve.label for curve in panel.curves]
    plotting.add_legend(axes, curves, labels, width - 60)


def add_curve(drawing: Drawing, axes: "Axes", panel: Panel, i: int) -> "Artist":
    """Draw a curve with its range and marks; return its line."""
    curve, style = panel.curves[i], plotting.series_look(i)
    if curve.published:
        style["linestyle"] = plotting.DASHES[1]
    if curve.low:
        axes.fill_between(curve.x, curve.low, curve.high, alpha=0.15, color=style["color"], lw=0)
    (line,) = axes.plot(curve.x, curve.y, **style)
    if len(curve.x) <= MARKED:
        ends = zip(curve.low, curve.high, strict=True) if curve.low else [None] * len(curve.x)
        for x, y, span in zip(curve.x, curve.y, ends, strict=True):
            (mark,) = axes.plot(x, y, "o", color=style["color"], markersize=5)
            between = "" if span is None else f" ({span[0]:.4g} to {span[1]:.4g})"
            drawing.add_hint(mark, f"{curve.label}, {x:g}: {y:.4g}{between}")
    return line


def set_scales(axes: "Axes", panel: Panel) -> None:
    """Set scales, limits and ticks of a panel of curves."""
    values = sorted({x for curve in panel.curves for x in curve.x})
    if panel.log_x:
        plotting.set_log_scale(axes, "x")
        if 0 < len(values) <= MARKED:
            axes.set_xticks(values, [plotting.short_number(x) for x in values])
    elif all(x == round(x) for x in values):
        axes.locator_params(axis="x", integer=True)
    if panel.y_scale == "log":
        plotting.set_log_scale(axes, "y")
    elif panel.y_scale == "symlog":
        axes.set_yscale("symlog", linthresh=LINEAR)
        axes.yaxis.set_major_formatter(lambda value, _: plotting.short_number(value))
    if panel.from_zero:
        axes.set_ylim(bottom=0)
    if panel.ticks:
        names = [fit_text(name, 120) for name in panel.ticks]
        places = range(1, len(names) + 1)
        axes.set_xticks(places, names, rotation=30, rotation_mode="anchor", ha="right")


def add_bars(drawing: Drawing, axes: "Axes", panel: Panel) -> None:
    """Draw one bar for each curve, with its value above and its name below."""
    for i, curve in enumerate(panel.curves):
        (bar,) = axes.bar(i, curve.y[0], color=plotting.SERIES[0])
        drawing.add_hint(bar, f"{curve.label}: {curve.y[0]:.4g}")
        axes.annotate(
            f"{curve.y[0]:.3g}", (i, curve.y[0]), (0, 3), textcoords="offset points", ha="center"
        )
    names = [fit_text(curve.label, 120) for curve in panel.curves]
    axes.set_xticks(range(len(names)), names, rotation=20, rotation_mode="anchor", ha="right")
    axes.margins(y=0.12)
