"""Curves and bars of one or several panels: records that become figures."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from fsbench.core import plotting
from fsbench.core.plotting import DASHES, LINE, SERIES, clean_text
from fsbench.core.specs import Frozen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = 380.0, 230.0
"""Width and height of a panel without its legend."""
MOST_COLUMNS = 3
MARKED = 12
"""Most values of a curve that each have a mark."""


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


@plotting.style()
def draw_panels(panels: Sequence[Panel], title: str = "") -> "Figure":
    """Return panels in up to three columns, each with its title and legend above."""
    columns = max(1, min(MOST_COLUMNS, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    above = LINE * max((1 + len(p.curves) * (not p.bars) for p in panels), default=0)
    figure = plotting.create_figure(PANEL[0] * columns, (PANEL[1] + above) * rows, title)
    for i, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.set(xlabel=clean_text(panel.x, 55), ylabel=clean_text(panel.y, 40))
        axes.grid(axis="y")
        heading = "\n".join(textwrap.wrap(clean_text(panel.title), 50))
        (_draw_bars if panel.bars else _draw_curves)(axes, panel, heading)
    return figure


def _draw_curves(axes: "Axes", panel: Panel, heading: str) -> None:
    for i, curve in enumerate(panel.curves):
        colour, dashes = SERIES[i % len(SERIES)], DASHES[i // len(SERIES) % len(DASHES)]
        if curve.low:
            axes.fill_between(curve.x, curve.low, curve.high, alpha=0.15, color=colour, lw=0)
        marker = "o" if len(curve.x) <= MARKED else ""
        dashes = DASHES[1] if curve.published else dashes
        axes.plot(curve.x, curve.y, color=colour, linestyle=dashes, marker=marker, markersize=5)
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderpad": 0}
    labels = ["."] * len(panel.curves)  # older matplotlib leaves out a label that begins with _
    legend = axes.legend(axes.get_lines(), labels, title=heading, alignment="left", **place)
    for text, curve in zip(legend.get_texts(), panel.curves, strict=True):
        text.set_text(clean_text(curve.label, 48))
    values = sorted({x for curve in panel.curves for x in curve.x})
    if panel.log_x:
        plotting.set_scale(axes, "x", "log")
        if 0 < len(values) <= MARKED:
            axes.set_xticks(values)
    elif all(x == round(x) for x in values):
        axes.locator_params(axis="x", integer=True)
    if panel.y_scale != "linear":
        plotting.set_scale(axes, "y", panel.y_scale)
    if panel.from_zero:
        axes.set_ylim(bottom=0)
    if panel.ticks:
        _name_ticks(axes, range(1, len(panel.ticks) + 1), panel.ticks)


def _draw_bars(axes: "Axes", panel: Panel, heading: str) -> None:
    """Draw one bar for each curve, with its value above and its name below."""
    bars = axes.bar(range(len(panel.curves)), [c.y[0] for c in panel.curves], color=SERIES[0])
    axes.bar_label(bars, fmt="{:.3g}", padding=2)
    axes.set_title(heading, loc="left")
    _name_ticks(axes, range(len(panel.curves)), [curve.label for curve in panel.curves])


def _name_ticks(axes: "Axes", positions: Sequence[int], names: Sequence[str]) -> None:
    labels = [clean_text(name, 24) for name in names]
    axes.set_xticks(positions, labels, rotation=30, rotation_mode="anchor", ha="right")
