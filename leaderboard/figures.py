"""Figures of a board: plain matplotlib over names and numbers, in percent or points.

    draw_gaps       gains with their intervals, the largest on top
    draw_scatter    one number against another
    draw_heat_map   gains of rows by column
    draw_bars       one or more positive numbers of each name
    draw_ranks      average ranks and the critical difference

They know nothing of boards and rankings, whose modules give them names and numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fsbench.core import plotting
from fsbench.core.plotting import GAIN, GUIDE, INK, LOSS, PAPER, SERIES, clean_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 640.0
ROW = 19.0
"""Height of a row with a name."""
LONGEST = 44
"""Characters of a name that a figure shows."""
WIDE = 12.0
"""Ratio of the largest number to a usual one from which on an axis is logarithmic."""
PALE_GAIN, PALE_LOSS = "#61a8cf", "#d89161"
"""The ends of the scale of a heat map, pale enough to read numbers on them."""
FEWEST = (3, 2)
"""Minimum numbers of entries and columns of Friedman's test."""
DIGITS = 12
"""Equal outcomes in another order differ in the last bits of their means."""


@dataclass(frozen=True)
class Mark:
    """A named number with its 95 % interval, at `x` where it is drawn against another.

    significant: coloured by its sign; single: of one pretraining seed, drawn hollow; front: on the
    line of those that no other beats in both numbers.
    """

    name: str
    value: float
    interval: tuple[float, float] | None = None
    significant: bool = False
    single: bool = False
    x: float = 0.0
    front: bool = False

    @classmethod
    def in_percent(
        cls, name: str, value: float, half: float | None, x: float, **look: bool
    ) -> "Mark":
        """Return a mark of fractions. half: of the interval, None if it is unknown."""
        value, half = 100 * value, half and 100 * half
        ends = None if half is None else (value - half, value + half)
        return cls(name, value, ends, x=x, **look)

    @property
    def colour(self) -> str:
        if not self.significant:
            return GAIN if self.front else INK
        return GAIN if self.value > 0 else LOSS


def write_points(points: float, digits: int) -> str:
    """Return e.g. +1.20, −0.35 or 0.00."""
    text = f"{points:+.{digits}f}".replace("-", "−")
    return text if any(c in text for c in "123456789") else text[1:]


def draw_mark(axes: "Axes", mark: Mark, row: float | None = None) -> None:
    """Draw a point with its interval: along a row, or else upright at its x."""
    face = PAPER if mark.single else mark.colour
    look: dict[str, Any] = {"color": mark.colour, "markerfacecolor": face, "label": mark.name}
    ends = list(mark.interval or ())
    if row is None:
        axes.plot([mark.x] * len(ends), ends, color=mark.colour, alpha=0.5, linewidth=1)
        axes.plot([mark.x], [mark.value], "o", **look)
    else:
        axes.plot(ends, [row] * len(ends), color=mark.colour)
        axes.plot([mark.value], [row], "o", **look)


def widen_scale(axes: "Axes", side: Literal["x", "y"], marks: Sequence[Mark]) -> None:
    """Make an axis logarithmic on both sides of 0 where few numbers would hide all others."""
    sizes = [abs(number) for mark in marks for number in (mark.value, *(mark.interval or ()))]
    middle = median(sizes) if sizes else 0.0
    if middle and max(sizes) > WIDE * middle:
        plotting.set_scale(axes, side, "symlog", linear=middle)


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Write a name left of each row 0, 1, ..., from the top."""
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [clean_text(name, LONGEST) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.spines.left.set_visible(False)


@plotting.style()
def draw_gaps(marks: Sequence[Mark], title: str, reference: str) -> "Figure":
    """Return gains over a reference (plain training) with intervals; the title counts them."""
    marks = sorted(marks, key=lambda mark: -mark.value)
    up, down = (sum(m.significant and m.value * sign > 0 for m in marks) for sign in (1, -1))
    finding = f"{title}: of {len(marks)}, {up} significantly above {reference}, {down} below"
    figure = plotting.create_figure(WIDTH, 70 + ROW * max(len(marks), 1), finding)
    axes = figure.add_subplot()
    axes.axvline(0, **GUIDE)
    for row, mark in enumerate(marks):
        draw_mark(axes, mark, row)
        text, beside = write_points(mark.value, 2), axes.get_yaxis_transform()
        axes.text(1.02, row, text, transform=beside, va="center_baseline")
    name_rows(axes, [mark.name for mark in marks])
    widen_scale(axes, "x", marks)
    key = "blue, orange: significant after Holm's correction; hollow: one seed"
    axes.set_xlabel(f"gain over {reference} in points, 95 % interval\n{key}")
    return figure


@plotting.style()
def draw_scatter(
    marks: Sequence[Mark],
    title: str,
    x: str,
    y: str,
    *,
    level: bool = False,
    diagonal: bool = False,
) -> "Figure":
    """Return marks over their x, named at the right edge in the order of their values.

    x, y: what the axes show, with units. level: values are gains, so 0 has a line; diagonal: a line
    where both numbers are equal.
    """
    figure = plotting.create_figure(WIDTH, max(360, 70 + 14 * len(marks)), title)
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(axis="y")
    front = sorted((mark for mark in marks if mark.front), key=lambda mark: mark.x)
    axes.step([m.x for m in front], [m.value for m in front], where="post", color=GAIN, lw=1)
    hair: dict[str, Any] = {"arrowstyle": "-", "color": INK, "alpha": 0.25, "relpos": (0, 0.5)}
    for i, mark in enumerate(sorted(marks, key=lambda mark: mark.value)):
        draw_mark(axes, mark)
        axes.annotate(
            clean_text(mark.name, 30),
            (mark.x, mark.value),
            (1.04, (i + 0.5) / len(marks)),
            textcoords="axes fraction",
            va="center",
            color=mark.colour,
            arrowprops=hair | {"shrinkA": 0, "shrinkB": 4},
        )
    if level:
        axes.axhline(0, **GUIDE)
        widen_scale(axes, "y", marks)
    if marks and max(m.x for m in marks) > WIDE * min(m.x for m in marks) > 0:
        plotting.set_scale(axes, "x", "log")
    if diagonal:
        axes.axline((0, 0), (1, 1), **GUIDE)
    return figure


@plotting.style()
def draw_heat_map(
    rows: Sequence[str], columns: Sequence[str], marks: Sequence[Sequence[Mark | None]], title: str
) -> "Figure":
    """Return gains of rows (methods) by column (targets), as colours and numbers.

    Bold where the 95 % interval excludes 0; empty where there is no gain.
    """
    from matplotlib.colors import LinearSegmentedColormap, SymLogNorm

    width = max(WIDTH, 180 + 33 * len(columns))
    heads = [clean_text(column, 30) for column in columns]
    height = 60 + 8 * max(map(len, heads), default=0) + ROW * max(len(rows), 1)
    figure = plotting.create_figure(width, height, title)
    axes = figure.add_subplot()
    values = [[math.nan if mark is None else mark.value for mark in line] for line in marks]
    largest = max((abs(v) for line in values for v in line if not math.isnan(v)), default=0) or 1
    colours = LinearSegmentedColormap.from_list("gains", [PALE_LOSS, PAPER, PALE_GAIN])
    norm = SymLogNorm(min(1.0, largest), vmin=-largest, vmax=largest)
    if values and columns:
        axes.pcolormesh(np.ma.masked_invalid(values), cmap=colours, norm=norm, edgecolors=PAPER)
    for i, line in enumerate(marks):
        for j, mark in enumerate(line):
            if mark is not None:
                low, high = mark.interval or (0.0, 0.0)
                weight = "bold" if low * high > 0 else "normal"
                look: dict[str, Any] = {"size": 8.5, "weight": weight, "ha": "center"}
                axes.text(j + 0.5, i + 0.5, write_points(mark.value, 1), va="center", **look)
    axes.set_yticks([i + 0.5 for i in range(len(rows))], [clean_text(r, LONGEST) for r in rows])
    axes.set_xticks([j + 0.5 for j in range(len(columns))], heads, rotation=90)
    axes.tick_params(length=0, labelbottom=False, labeltop=True)
    axes.spines[:].set_visible(False)
    axes.invert_yaxis()
    axes.set_xlabel("gain in points; bold: the 95 % interval excludes 0")
    return figure


@plotting.style()
def draw_bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    title: str,
    unit: str,
) -> "Figure":
    """Return one bar of each series for each name."""
    height = 70 + 16 * len(series) + (8 + 12 * len(series)) * max(len(names), 1)
    figure = plotting.create_figure(WIDTH, height, title)
    axes = figure.add_subplot()
    thick = 0.8 / max(len(series), 1)
    for k, (label, values) in enumerate(series.items()):
        rows = [row + thick * (k - (len(series) - 1) / 2) for row in range(len(names))]
        bars = axes.barh(rows, values, 0.9 * thick, color=SERIES[k], label=label)
        axes.bar_label(bars, fmt="{:.2f}", padding=3)
    name_rows(axes, names)
    axes.set_xlabel(unit)
    if len(series) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
    return figure


@plotting.style()
def draw_ranks(names: Sequence[str], means: NDArray[np.float64], alpha: float) -> "Figure | None":
    """Return average ranks, the best on top; bars on the right join what Nemenyi's test does not.

    means: (columns, entries), the highest has rank 1. None for too few entries or columns.

    J. Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006). The
    tests assume independent columns; columns of one data set are not, so they are optimistic there.
    """
    if means.shape[1] < FEWEST[0] or means.shape[0] < FEWEST[1]:
        return None
    ranks, difference, p = compute_ranks(means, alpha)
    order = sorted(range(len(names)), key=lambda i: (ranks[i], names[i]))
    values = [ranks[i] for i in order]
    shown = "< .001" if p < 0.001 else f"{p:.2g}"
    title = f"Average ranks over {len(means)} columns (Friedman's p {shown})"
    figure = plotting.create_figure(WIDTH, 90 + ROW * len(names), title)
    axes = figure.add_subplot()
    axes.plot(values, range(len(names)), "o", color=INK)
    for row, value in enumerate(values):
        axes.annotate(f"{value:.2f}", (value, row), (7, 0), textcoords="offset points", va="center")
    name_rows(axes, [names[i] for i in order])
    span = max(values[-1] - values[0], 1.0)
    for k, rows in enumerate(list_cliques(values, difference)):
        axes.plot([values[-1] + span * (0.15 + 0.03 * k)] * 2, rows, color=SERIES[0], linewidth=4)
    axes.set_ylim(top=-1.7)
    axes.plot([values[0], values[0] + difference], [-1, -1], "|-", color=INK)
    axes.annotate(f"critical difference {difference:.2f}", (values[0], -1.2))
    axes.set_xlabel(f"average rank; a bar joins what does not differ at {alpha:g}")
    return figure


def list_cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return first and last row of the largest sets of sorted ranks within one difference."""
    lasts = [sum(rank < first + difference for rank in ranks) - 1 for first in ranks]
    return [(i, last) for i, last in enumerate(lasts) if last > max([i, *lasts[:i]])]


def compute_ranks(means: NDArray[np.float64], alpha: float) -> tuple[list[float], float, float]:
    """Return average ranks of the entries, the critical difference and p of Friedman's test.

    means: (columns, entries). p is 1 if all entries tie in every column.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    means = means.round(DIGITS)
    columns, entries = means.shape
    q = studentized_range.ppf(1 - alpha, entries, math.inf) / math.sqrt(2)
    difference = float(q) * math.sqrt(entries * (entries + 1) / (6 * columns))
    tied = (means == means[:, :1]).all()
    p = 1.0 if tied else float(friedmanchisquare(*means.T).pvalue)
    return rankdata(-means, axis=1).mean(axis=0).tolist(), difference, p
