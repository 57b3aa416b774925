"""Figures of a board, one for each question, in percent or points.

    gains            gains over plain training, and which of them survive Holm's correction
    targets          gains by column
    in_domain        accuracy on the targets against accuracy on the source
    in_domain_gains  gains on the source
    carry            gains on the targets against gains on the source
    cost             gains against the cost of pretraining, in operations, which fit any machine
    spread           half-widths of intervals over episodes, and over episodes and seeds
    ranks            average ranks of entries and their critical difference
    stability        Kendall's tau between choices, and the row that is first under each

A question that the board cannot answer has no figure.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fsbench.core import plotting
from fsbench.core.plotting import GAIN, GUIDE, INK, LOSS, PAPER, SERIES, clean_text
from fsbench.results.table import shorten_columns
from leaderboard.controls import ControlKind
from leaderboard.methods import Gain, MethodBoard, MethodRow
from leaderboard.ranking.simultaneous import tabulate_ranges
from leaderboard.ranking.stability import Stability
from leaderboard.ranking.tiers import ALPHA
from leaderboard.tables import BoardTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

PLAIN = "plain training"
OVER_PLAIN = f"gain over {PLAIN} (points)"
WIDTH = 640.0
ROW = 19.0
"""Height of a row with a name."""
LONGEST = 44
"""Characters of a name that a figure shows."""
WIDE = 12.0
"""Ratio of the largest x to the smallest from which on its axis is logarithmic."""
PALE_GAIN, PALE_LOSS = "#61a8cf", "#d89161"
"""The ends of the scale of a heat map, pale enough to read numbers on them."""
FEWEST = (3, 2)
"""Minimum numbers of entries and columns of Friedman's test."""
DIGITS = 12
"""Equal outcomes in another order differ in the last bits of their means."""


@dataclass(frozen=True)
class Mark:
    """A named number with the half-width of its interval, at `x` where it is drawn against another.

    Numbers of one pretraining seed are hollow, significant ones coloured by their sign.
    """

    name: str
    seeds: int
    value: float
    half: float | None = None
    x: float = 0.0
    is_significant: bool = False

    @property
    def colour(self) -> str:
        if not self.is_significant:
            return INK
        return GAIN if self.value > 0 else LOSS

    def draw(self, axes: "Axes", x: float, y: float, side: Literal["xerr", "yerr"]) -> None:
        """Draw the number at a point, with its interval along a row (xerr) or upright (yerr)."""
        style: dict[str, Any] = {"fmt": "o", "color": self.colour, side: self.half}
        face = PAPER if self.seeds == 1 else self.colour
        axes.errorbar(x, y, **style, elinewidth=1, markerfacecolor=face, label=self.name)


def mark_gain(row: MethodRow, gain: Gain, x: float = 0.0) -> Mark:
    """Return a gain in points."""
    half = None if gain.ci95 is None else 100 * gain.ci95
    return Mark(row.name, len(gain.seeds), 100 * gain.gap, half, x, gain.significant)


def write_figures(boards: Sequence[MethodBoard], folder: Path) -> list[Path]:
    """Write the figures of all method boards as SVG files and return their paths."""
    return save_figures({board.track: draw_figures(board) for board in boards}, folder)


def write_ranks(tables: Sequence[BoardTable], folder: Path) -> list[Path]:
    """Write the average ranks of all ranked entries, an SVG file for each table that has enough."""
    return save_figures({t.label: {"ranks": draw_table_ranks(t)} for t in tables}, folder)


def write_stability(stability: Stability, folder: Path) -> list[Path]:
    """Write one SVG file for the tables of a board, and one for the parts of each table."""
    drawn = {
        group: {"stability": draw_stability(stability, f"Order of entries: {group}", positions)}
        for group, positions in stability.groups.items()
    }
    return save_figures(drawn, folder)


def save_figures(figures: "Mapping[str, Mapping[str, Figure | None]]", folder: Path) -> list[Path]:
    """Write the figures of each track as SVG files, its name first, and return their paths."""
    paths = []
    for track, by_name in figures.items():
        prefix = re.sub(r"\W+", "-", track).strip("-")
        for name, figure in by_name.items():
            if figure is not None:
                paths.append(folder / f"{prefix}{'-' * bool(prefix)}{name}.svg")
                plotting.write_figure(figure, paths[-1])
    return paths


def draw_figures(board: MethodBoard) -> "dict[str, Figure | None]":
    """Return figures by name, None where there is nothing to draw."""
    track = f", {board.track}" if board.track else ""
    gains = [(row, row.gain) for row in board.rows if row.gain]
    on_source = [(row, row.source_gain) for row in board.rows if row.source_gain]
    carried = [(r, g, 100 * r.source_gain.gap) for r, g in gains if r.source_gain]
    costs = [(row, gain, row.costs["flops"] / 1e12) for row, gain in gains]
    if len({flops for *_, flops in costs}) < 2:
        costs = []
    accuracies = [
        Mark(r.name, len(r.seeds), 100 * o.mean, o.ci95 and 100 * o.ci95, 100 * r.source_accuracy)
        for r in board.rows
        if (o := r.overall) and r.source_accuracy is not None
    ]
    return {
        "gains": draw_gains([mark_gain(*pair) for pair in gains], f"Gains on the targets{track}"),
        "targets": draw_columns(
            board, [row for row, _ in gains], "normal", f"Gains over {PLAIN} by column{track}"
        ),
        "in_domain": draw_scatter(
            accuracies,
            f"Accuracy on the source and on the targets{track}",
            "validation accuracy on the source (%)",
            "mean accuracy on the targets (%)",
        ),
        "in_domain_gains": draw_gains(
            [mark_gain(*p) for p in on_source], f"Gains on the source{track}"
        ),
        "carry": draw_scatter(
            [mark_gain(*point) for point in carried],
            f"Gains on the source and on the targets{track}",
            f"source: {OVER_PLAIN}",
            f"targets: {OVER_PLAIN}",
        ),
        "cost": draw_scatter(
            [mark_gain(*point) for point in costs],
            f"Gain and cost{track}",
            "operations of a pretraining run (TFLOPs)",
            OVER_PLAIN,
        ),
        "spread": draw_spread(board, f"Spread over seeds and over episodes{track}"),
    }


def create_row_figure(
    names: Sequence[str], title: str, width: float = WIDTH, above: float = 0.0
) -> "tuple[Figure, Axes]":
    """Return a figure with a row for each name, 0, 1, ..., from the top; above: room on top."""
    figure = plotting.create_figure(width, 80 + above + ROW * len(names), title)
    axes = figure.add_subplot()
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [clean_text(name, LONGEST) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.spines.left.set_visible(False)
    return figure, axes


@plotting.style()
def draw_gains(gains: Sequence[Mark], title: str) -> "Figure | None":
    """Return gains by row with intervals and the number of seeds; the title counts them."""
    if not gains:
        return None
    marks = sorted(gains, key=lambda mark: -mark.value)
    up, down = (sum(m.is_significant and m.value * sign > 0 for m in marks) for sign in (1, -1))
    finding = f"{title}: of {len(marks)}, {up} significantly above {PLAIN}, {down} below"
    names = [f"{mark.name}, {mark.seeds} seed{'s' * (mark.seeds > 1)}" for mark in marks]
    figure, axes = create_row_figure(names, finding)
    axes.axvline(0, **GUIDE)
    for row, mark in enumerate(marks):
        mark.draw(axes, mark.value, row, "xerr")
        beside = axes.get_yaxis_transform()
        axes.text(1.02, row, f"{mark.value:+.2f}", transform=beside, va="center_baseline")
    key = "blue, orange: significant after Holm's correction; hollow: one seed"
    axes.set_xlabel(f"gain over {PLAIN} in points, 95 % interval\n{key}")
    return figure


@plotting.style()
def draw_scatter(marks: Sequence[Mark], title: str, x: str, y: str) -> "Figure | None":
    """Return two marks or more over their x, named at the right edge in the order of their values.

    x, y: what the axes show, with units. Gains have a line at 0, two kinds of gains one where they
    are equal.
    """
    if len(marks) < 2:
        return None
    figure = plotting.create_figure(WIDTH, max(360, 70 + 14 * len(marks)), title)
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(axis="y")
    hair: dict[str, Any] = {"arrowstyle": "-", "color": INK, "alpha": 0.25, "relpos": (0, 0.5)}
    for i, mark in enumerate(sorted(marks, key=lambda mark: mark.value)):
        mark.draw(axes, mark.x, mark.value, "yerr")
        axes.annotate(
            clean_text(mark.name, 30),
            (mark.x, mark.value),
            (1.04, (i + 0.5) / len(marks)),
            textcoords="axes fraction",
            va="center",
            color=mark.colour,
            arrowprops=hair | {"shrinkA": 0, "shrinkB": 4},
        )
    if OVER_PLAIN in y:
        axes.axhline(0, **GUIDE)
    if OVER_PLAIN in x:
        axes.axline((0, 0), (1, 1), **GUIDE)
    elif max(m.x for m in marks) > WIDE * min(m.x for m in marks) > 0:
        plotting.set_scale(axes, "x", "log")
    return figure


@plotting.style()
def draw_columns(
    board: MethodBoard, rows: Sequence[MethodRow], control: ControlKind, title: str
) -> "Figure | None":
    """Return gains of these rows over a kind of control by column, as colours and numbers.

    Bold where the 95 % interval excludes 0; empty where there is no gain.
    """
    from matplotlib.colors import SymLogNorm

    gains = {
        (i, j): score.gains[control]
        for i, row in enumerate(rows)
        for j, column in enumerate(board.columns)
        if (score := row.scores.get(column)) and control in score.gains
    }
    if not gains:
        return None
    heads = [clean_text(column, 30) for column in shorten_columns(board.columns)[0]]
    width, above = max(WIDTH, 180 + 33 * len(heads)), 8 * max(map(len, heads))
    figure, axes = create_row_figure([row.name for row in rows], title, width, above)
    values = np.full((len(rows), len(heads)), math.nan)
    for (i, j), gain in gains.items():
        values[i, j] = 100 * gain.gap
        weight = "bold" if gain.ci95 is not None and abs(gain.gap) > gain.ci95 else "normal"
        style: dict[str, Any] = {"size": 8.5, "weight": weight, "ha": "center", "va": "center"}
        axes.text(j, i, f"{100 * gain.gap:+.1f}", **style)
    largest = float(np.nanmax(abs(values))) or 1.0
    fill_squares(axes, values, heads, SymLogNorm(min(1.0, largest), vmin=-largest, vmax=largest))
    axes.set_xlabel("gain in points; bold: the 95 % interval excludes 0")
    return figure


def fill_squares(
    axes: "Axes", values: NDArray[np.float64], columns: Sequence[str], norm: "Normalize"
) -> None:
    """Colour the squares of a heat map (rows, columns), and name its columns on top."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("gains", [PALE_LOSS, PAPER, PALE_GAIN])
    edges = (np.arange(n + 1) - 0.5 for n in reversed(values.shape))
    axes.pcolormesh(*edges, np.ma.masked_invalid(values), cmap=colours, norm=norm, edgecolors=PAPER)
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.tick_params(length=0, labelbottom=False, labeltop=True)
    axes.spines[:].set_visible(False)


@plotting.style()
def draw_spread(board: MethodBoard, title: str) -> "Figure | None":
    """Return both half-widths of the interval of the overall accuracy, for several seeds."""
    halves = {
        row.name: (100 * score.ci95, 100 * score.ci95_seeds)
        for row in board.rows
        if (score := row.overall) and score.ci95 is not None and score.ci95_seeds is not None
    }
    if not halves:
        return None
    figure, axes = create_row_figure([*halves], title)
    for k, label in enumerate(("over episodes, for these seeds", "over episodes and seeds")):
        values = [pair[k] for pair in halves.values()]
        axes.plot(values, range(len(halves)), "o", color=SERIES[k], label=label)
    axes.grid()
    axes.set_xlim(left=0)
    axes.set_xlabel("half-width of the 95 % interval (points)")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def draw_table_ranks(table: BoardTable, most: int | None = None) -> "Figure | None":
    """Return the average ranks of the ranked entries. most: number of entries, the best ones."""
    entries = [entry for tier in table.ranking.tiers for entry in tier][:most]
    columns = table.ranking.columns
    scores = [[entry.scores[column].mean for entry in entries] for column in columns]
    means = np.array(scores).reshape(len(columns), len(entries))
    return draw_ranks([entry.name for entry in entries], means)


@plotting.style()
def draw_ranks(
    names: Sequence[str], means: NDArray[np.float64], alpha: float = ALPHA
) -> "Figure | None":
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
    figure, axes = create_row_figure([names[i] for i in order], title)
    axes.plot(values, range(len(names)), "o", color=INK)
    for row, value in enumerate(values):
        axes.annotate(f"{value:.2f}", (value, row), (7, 0), textcoords="offset points", va="center")
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
    from scipy.special import chdtrc

    means = means.round(DIGITS)
    columns, entries = means.shape
    ranges, beyond = tabulate_ranges(entries)  # importing scipy.stats would take half a second
    difference = np.interp(-alpha, -beyond, ranges) * math.sqrt(entries * (entries + 1) / 12)
    excess = np.sign(means[:, None, :] - means[:, :, None]).sum(axis=2) / 2
    spread = max((excess**2).sum(), 1e-9)
    p = chdtrc(entries - 1, (entries - 1) * (excess.sum(axis=0) ** 2).sum() / spread)
    ranks = excess.mean(axis=0) + (entries + 1) / 2
    return ranks.tolist(), float(difference) / math.sqrt(columns), float(p)


@plotting.style()
def draw_stability(
    stability: Stability, title: str, positions: Mapping[str, int]
) -> "Figure | None":
    """Return Kendall's tau between choices as colours and numbers, and on the right who is first.

    positions: label -> position of the choices. None for one choice.
    """
    from matplotlib.colors import Normalize

    if len(positions) < 2:
        return None
    labels, shown = [clean_text(label, LONGEST) for label in positions], [*positions.values()]
    taus = np.array(stability.taus, np.float64)[np.ix_(shown, shown)]  # None becomes nan
    width, above = 480 + 33 * len(labels), 7 * max(map(len, labels))
    figure, axes = create_row_figure(labels, title, width, above)
    fill_squares(axes, taus, labels, Normalize(-1, 1))
    for i, choice in enumerate(stability.choices[position] for position in shown):
        for j in np.flatnonzero(~np.isnan(taus[i])).tolist():
            axes.text(j, i, f"{taus[i, j]:.2f}", size=8.5, ha="center", va="center")
        beside, first = axes.get_yaxis_transform(), clean_text(", ".join(choice.first), LONGEST)
        text = f"{len(choice.tier)} of {len(choice.ranks)}: {first}"
        axes.text(1.02, i, text, transform=beside, va="center_baseline")
    axes.set_xlabel("Kendall's tau; on the right, entries in tier 1 and the first of them")
    return figure
