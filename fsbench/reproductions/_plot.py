"""A claim's curves as a picture; matplotlib comes with the `report` extra."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsbench.reproductions._outcome import Outcome, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 4.2, 3.4
"""Inches a panel."""
COLUMNS = 3
LINEAR = 0.1
"""Around zero, where a symlog axis is linear."""


def available() -> bool:
    """Whether pictures can be drawn here."""
    return find_spec("matplotlib") is not None


def draw(outcome: Outcome, path: Path) -> None:
    """Write an outcome's panels to `path`. Needs matplotlib."""
    picture(outcome.panels, f"{outcome.source}: {outcome.verdict}", path)


def picture(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Write panels to `path` (its suffix says the format). Needs matplotlib."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows), layout="constrained")
    axes: list[Any] = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, axis in zip(panels, axes, strict=False):
        fill(axis, panel)
    for unused in axes[len(panels) :]:
        unused.remove()
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=150, metadata={"Software": None} if path.suffix == ".png" else None)


def fill(axis: Axes, panel: Panel) -> None:
    """One panel; published values are dashed."""
    axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    axis.grid(alpha=0.3)
    axis.set_axisbelow(True)
    if panel.bars:
        bars(axis, panel)
        return
    for curve in panel.curves:
        style = "--" if curve.published else "-"
        mark = "o" if len(curve.x) <= 12 else None
        line = axis.plot(curve.x, curve.y, style, marker=mark, markersize=3, label=curve.label)
        if curve.low:
            axis.fill_between(curve.x, curve.low, curve.high, alpha=0.2, color=line[0].get_color())
    axis.set_xscale("log" if panel.log_x else "linear")
    axis.set_yscale(panel.y_scale, **({"linthresh": LINEAR} if panel.y_scale == "symlog" else {}))
    if panel.from_zero:
        axis.set_ylim(bottom=0)
    if all(x == round(x) for curve in panel.curves for x in curve.x) and not panel.log_x:
        axis.locator_params(axis="x", integer=True)
    if panel.ticks:
        places = range(1, len(panel.ticks) + 1)
        axis.set_xticks(places, panel.ticks, rotation=30, ha="right", fontsize=7)
    axis.legend(fontsize=7)


def bars(axis: Axes, panel: Panel) -> None:
    """One bar a curve, with its value."""
    for curve in panel.curves:
        axis.bar_label(axis.bar([curve.label], curve.y), fmt="%.3g", fontsize=7)
    axis.tick_params(axis="x", labelrotation=20, labelsize=7)
    axis.margins(y=0.1)
