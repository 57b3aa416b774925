"""Figures of views: those of one title share a panel of curves or bars."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fsbench.core import plotting
from fsbench.core.plotting import DASHES, LINE, SERIES, clean_text
from fsbench.core.schema import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = 380.0, 230.0
"""Width and height of a panel without its legend."""
MOST_COLUMNS = 3
MARKED = 12
"""Most values of a curve that each have a mark."""
MOST_NAMED = 8
"""Most positions that an axis names one by one."""


@plotting.style()
def draw_views(views: Sequence[View], title: str = "") -> "Figure":
    """Return panels in up to three columns, each with its title and legend above.

    Views of single values are bars.
    """
    panels: dict[str, list[View]] = {}
    for view in views:
        panels.setdefault(view.title, []).append(view)
    columns = max(1, min(MOST_COLUMNS, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    above = LINE * max((1 + len(p) * (not _is_bars(p)) for p in panels.values()), default=0)
    figure = plotting.create_figure(PANEL[0] * columns, (PANEL[1] + above) * rows, title)
    for i, (name, panel) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.set(xlabel=clean_text(panel[0].x, 55), ylabel=clean_text(panel[0].y, 40))
        axes.grid(axis="y")
        heading = "\n".join(textwrap.wrap(clean_text(name), 50))
        (_draw_bars if _is_bars(panel) else _draw_curves)(axes, panel, heading)
    return figure


def _is_bars(panel: Sequence[View]) -> bool:
    return all(len(view.at) == 1 for view in panel)


def _draw_curves(axes: "Axes", panel: Sequence[View], heading: str) -> None:
    """Draw a line for each view on axes as the first one states, its range shaded around it."""
    for i, view in enumerate(panel):
        colour, dashes = SERIES[i % len(SERIES)], DASHES[i // len(SERIES) % len(DASHES)]
        if view.low:
            axes.fill_between(view.at, view.low, view.high, alpha=0.15, color=colour, lw=0)
        marker = "o" if len(view.at) <= MARKED else ""
        axes.plot(view.at, view.values, color=colour, linestyle=dashes, marker=marker, markersize=5)
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderpad": 0}
    labels = ["."] * len(panel)  # older matplotlib leaves out a label that begins with _
    legend = axes.legend(axes.get_lines(), labels, title=heading, alignment="left", **above)
    for text, view in zip(legend.get_texts(), panel, strict=True):
        text.set_text(clean_text(view.label, 48))
    positions = sorted({at for view in panel for at in view.at})
    first, names = panel[0], {view.places for view in panel}
    if first.log_x:
        plotting.set_scale(axes, "x", "log")
        if len(positions) <= MARKED:
            axes.set_xticks(positions)
    elif all(at == round(at) for at in positions):
        axes.locator_params(axis="x", integer=True)
    if first.y_scale != "linear":
        plotting.set_scale(axes, "y", first.y_scale)
    if first.from_zero:
        axes.set_ylim(bottom=0)
    if len(names) == 1 and 0 < len(first.places) <= MOST_NAMED:
        _name_ticks(axes, range(1, len(first.places) + 1), first.places)


def _draw_bars(axes: "Axes", panel: Sequence[View], heading: str) -> None:
    """Draw one bar for each view, with its value above and its label below."""
    bars = axes.bar(range(len(panel)), [view.values[0] for view in panel], color=SERIES[0])
    axes.bar_label(bars, fmt="{:.3g}", padding=2)
    axes.set_title(heading, loc="left")
    _name_ticks(axes, range(len(panel)), [view.label for view in panel])


def _name_ticks(axes: "Axes", positions: Sequence[int], names: Sequence[str]) -> None:
    labels = [clean_text(name, 24) for name in names]
    axes.set_xticks(positions, labels, rotation=30, rotation_mode="anchor", ha="right")
