"""Forests: rows with names and, along them, numbers with their intervals, in panels side by side.

Gains, gaps, tiers and costs are drawn so. Every name is whole, and a legend explains every symbol.
"""

import textwrap
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core import plotting
from fsbench.core.plotting import GUIDE, INK, PAPER, Columns, Properties, clean_text
from fsbench.core.tables import wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, BELOW = 19.0, 60.0
"""Heights of a row with one line, and of the axis below the rows."""
APART = 0.36
"""Distance between the marks of a row, in rows."""
LONGEST = 100
"""Characters of a name from which on its middle is left out: no board has such a name."""


class Symbol(NamedTuple):
    """Looks of marks of one meaning. label: the meaning; without one, not in the legend."""

    label: str = ""
    colour: str = INK
    marker: str = "o"
    is_hollow: bool = False

    @property
    def properties(self) -> Properties:
        face = PAPER if self.is_hollow else self.colour
        return {"color": self.colour, "marker": self.marker, "markerfacecolor": face, "ls": "none"}


class Mark(NamedTuple):
    """A number of a row. half: half-width of its interval; text: what is written beside the row."""

    row: str
    value: float
    half: float | None = None
    symbol: Symbol = Symbol()
    text: str = ""


class Panel(NamedTuple):
    """Marks over one axis. x: what it shows, with its unit; guide: a value marked by a line."""

    x: str
    marks: Sequence[Mark]
    guide: float | None = None


class Forest(NamedTuple):
    """Panels over common rows. rows: the row of marks -> its name, from the top."""

    rows: Mapping[str, str]
    panels: Sequence[Panel]
    title: str = ""


def draw_forests(
    forests: Sequence[Forest], columns: Columns | None = None, title: str = ""
) -> "Figure":
    """Return forests below one another, with as many panels each, and one legend.

    columns: of a paper; None for a screen. What is filled in some row is filled in the legend.
    """
    width, panels = plotting.find_width(columns), len(forests[0].panels)
    marks = [mark for forest in forests for panel in forest.panels for mark in panel.marks]
    legend: dict[str, Properties] = {}
    for symbol in (mark.symbol for mark in marks if mark.symbol.label):
        if symbol.label not in legend or not symbol.is_hollow:
            legend[symbol.label] = symbol.properties
    folded = []
    for rows, of_forest, _ in forests:
        counts = [Counter(mark.row for mark in panel.marks) for panel in of_forest]
        most = [max(count[row] for count in counts) for row in rows]
        folded.append(fold_names(rows.values(), width, most))
    heights = [ROW * edges[-1] for _, edges in folded]
    with plotting.style(columns):
        height = sum(heights) + BELOW * len(forests)
        figure = plotting.create_figure(width, height, title, legend)
        grid = figure.add_gridspec(len(forests), panels, height_ratios=heights)
        for i, (forest, (names, edges)) in enumerate(zip(forests, folded, strict=True)):
            for j, panel in enumerate(forest.panels):
                axes = figure.add_subplot(grid[i, j])
                middles = name_rows(axes, names, edges)
                axes.tick_params(axis="y", labelleft=j == 0)
                axes.set_xlabel(textwrap.fill(panel.x, int(width / panels / 9)))
                axes.set_title(forest.title * (j == 0), loc="left")
                draw_panel(axes, panel, dict(zip(forest.rows, middles, strict=True)))
    return figure


def fold_names(
    names: Collection[str], width: float, marks: Sequence[int] = ()
) -> tuple[list[str], list[float]]:
    """Return names in lines for a figure of this width, and the edges between their rows (n + 1).

    marks: number of marks in each row. Edges are in rows of one line and mark.
    """
    folded = ["\n".join(wrap(clean_text(name, LONGEST), int(width / 14.5))) for name in names]
    counts = marks or [1] * len(folded)
    lines = (1 + name.count("\n") for name in folded)
    sizes = (max(1, 0.75 * n, APART * (m + 1)) for n, m in zip(lines, counts, strict=True))
    return folded, [*accumulate(sizes, initial=0.0)]


def name_rows(axes: "Axes", names: Sequence[str], edges: Sequence[float]) -> list[float]:
    """Write the names of rows from the top beside axes, and return the middles of the rows."""
    middles = [(first + last) / 2 for first, last in pairwise(edges)]
    axes.set_ylim(edges[-1], 0)
    axes.set_yticks(middles, names)
    axes.tick_params(axis="y", length=0)
    axes.spines.left.set_visible(False)
    return middles


def draw_panel(axes: "Axes", panel: Panel, middles: Mapping[str, float]) -> None:
    """Draw marks with their intervals, those of one row below each other, and their texts."""
    if panel.guide is not None:
        axes.axvline(panel.guide, **GUIDE)
    for row, middle in middles.items():
        marks = [mark for mark in panel.marks if mark.row == row]
        for i, mark in enumerate(marks):
            y = middle + APART * (i - (len(marks) - 1) / 2)
            properties = mark.symbol.properties | {"elinewidth": 1, "label": row}
            axes.errorbar(mark.value, y, xerr=mark.half, **properties)
        text = " / ".join(mark.text for mark in marks if mark.text)
        axes.text(1.02, middle, text, transform=axes.get_yaxis_transform(), va="center_baseline")
