"""Critical-difference diagram (Demsar 2006): mean ranks; bars join what a test cannot separate."""

from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING

from fsbench.core import plotting
from fsbench.core.plotting import INK, LINE_HEIGHT, Drawing, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXIS, BAR, FOOT = 56.0, 6.0, 10.0
"""Pixels: above the axis of ranks, between two bars, and below the last label."""
TICK = 20.0
"""Least pixels between two ranks of the axis."""
PHONE, PHONE_SHARE, SHARE = 500.0, 0.56, 0.34
"""Part of the width for the labels of one side; below PHONE pixels all stand on the left."""


@dataclass(frozen=True)
class Critical:
    """names: entries, best first; ranks: their mean ranks, 1 is best.

    difference: mean ranks that are further apart differ. cliques: sets of entries that do not.
    """

    title: str
    names: tuple[str, ...]
    ranks: tuple[float, ...]
    difference: float
    cliques: tuple[tuple[str, ...], ...]
    alpha: float = 0.05

    @property
    def description(self) -> str:
        ranks = ", ".join(f"{n} {rank:.2f}" for n, rank in zip(self.names, self.ranks, strict=True))
        return (
            f"Mean ranks; bars join entries that do not differ at alpha {self.alpha:g} "
            f"(critical difference {self.difference:.2f}): {ranks}."
        )

    def bars(self) -> list[tuple[float, float]]:
        """Return first and last rank of each clique of two or more of the entries.

        Where the chart has only some entries, cliques that became part of another are left out.
        """
        rank = dict(zip(self.names, self.ranks, strict=True))
        members = [{name for name in clique if name in rank} for clique in self.cliques]
        largest = [m for m in members if len(m) > 1 and not any(m < other for other in members)]
        ends = [(min(rank[n] for n in m), max(rank[n] for n in m)) for m in largest]
        return list(dict.fromkeys(ends))


@plotting.style()
def draw(chart: Critical, width: float = 720) -> Drawing:
    """Return the axis of ranks with bars of cliques and lines to the labels of the entries."""
    n, narrow = len(chart.names), width < PHONE
    on_left = n if narrow else (n + 1) // 2
    bars = chart.bars()
    labels_top = AXIS + BAR * len(bars) + LINE_HEIGHT
    height = labels_top + LINE_HEIGHT * on_left + FOOT
    drawing = Drawing.create(chart.title, chart.description, width, height)
    low, high = floor(min(chart.ranks, default=1)), ceil(max(chart.ranks, default=2))
    high = max(high, low + 1)
    left, right = (PHONE_SHARE, 0.04) if narrow else (SHARE, SHARE)
    pixels = width * (1 - left - right) / (high - low)
    axes = drawing.add_axes(0, 0, 0, 0)
    axes.set(xlim=(low - width * left / pixels, high + width * right / pixels))
    axes.set(ylim=(drawing.size[1], 0))
    axes.set_axis_off()
    draw_axis(axes, low, high, chart.difference, every=max(1, ceil(TICK / pixels)))
    for i, (first, last) in enumerate(bars):
        y = AXIS + BAR * (i + 1.2)
        axes.plot([first, last], [y, y], color=INK, linewidth=3, solid_capstyle="round")
    edge = 8 / pixels
    room = width * (PHONE_SHARE if narrow else SHARE) - 20
    for i, (name, rank) in enumerate(zip(chart.names, chart.ranks, strict=True)):
        row, side = (i, -1) if i < on_left else (n - 1 - i, 1)
        y, end = labels_top + LINE_HEIGHT * row, (low - edge if side < 0 else high + edge)
        axes.plot([rank, rank, end], [AXIS, y, y], color=INK, linewidth=1)
        text = f"{fit_text(name, room - plotting.text_width(f' {rank:.2f}'))} {rank:.2f}"
        anchor = "right" if side < 0 else "left"
        label = axes.text(end + side * 4 / pixels, y + 4, text, ha=anchor)
        drawing.add_hint(label, f"{name}: mean rank {rank:.2f}")
    return drawing


def draw_axis(axes: "Axes", low: int, high: int, difference: float, every: int) -> None:
    """Draw the ranks from best to worst, and the critical difference above them."""
    axes.plot([low, high], [AXIS, AXIS], color=INK, linewidth=1)
    for rank in range(low, high + 1, every):
        axes.plot([rank, rank], [AXIS - 5, AXIS], color=INK, linewidth=1)
        axes.text(rank, AXIS - 9, str(rank), ha="center")
    axes.text(low, 13, f"critical difference {difference:.2f}")
    end = low + difference
    if end <= high:
        x = [low, low, low, end, end, end]
        axes.plot(x, [18, 26, 22, 22, 18, 26], color=INK, linewidth=1.5)
