"""Figures of a board and of results, one for each question, in percent or points.

Of a method board (`draw_figures`), in rows that are sorted by the first panel:

    gains            gains over plain training, and which of them survive Holm's correction
    gains_tuned      the same over plain training with searched settings
    targets          gains by data set and shots
    in_domain        accuracy on the targets, and on the source
    in_domain_gains  gains on the source
    carry            gains on the targets, and on the source
    cost             gains, and the cost of pretraining in operations, which fit any machine
    spread           intervals over episodes, and over episodes and seeds

Of tables: tiers; average ranks and their critical difference; Kendall's tau between choices, and
who is first under each. A question that the board cannot answer has no figure.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core import plotting
from fsbench.core.forest import (
    ROW,
    Forest,
    Mark,
    Panel,
    Symbol,
    draw_forests,
    fold_names,
    name_rows,
)
from fsbench.core.plotting import GAIN, INK, LOSS, PAPER, SERIES, clean_text
from fsbench.core.progress import format_count
from leaderboard.controls import ControlKind
from leaderboard.methods import TUNED_NORMAL, Gain, MethodBoard, MethodRow
from leaderboard.ranking.simultaneous import tabulate_ranges
from leaderboard.ranking.stability import Stability
from leaderboard.ranking.tiers import ALPHA
from leaderboard.render.figure import INTERVAL, make_tier_forest
from leaderboard.render.frame import make_frame, name_columns
from leaderboard.render.notes import to_percent
from leaderboard.tables import BoardTable

if TYPE_CHECKING:
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

PLAIN = "plain training"
OVER_PLAIN = f"gain over {PLAIN} (points), {INTERVAL}"
ON_TARGETS = f"mean accuracy on the targets (%), {INTERVAL}"
UP = Symbol("significantly above (Holm)", GAIN, "^")
DOWN = Symbol("significantly below", LOSS, "v")
LEVEL = Symbol("not significant")
ONE_SEED = Symbol("one seed: not tested", is_hollow=True)
MEASURED = Symbol("several seeds"), Symbol("one seed", is_hollow=True)
COST = Symbol(marker="s", colour=SERIES[5])
PALE_GAIN, PALE_LOSS = "#61a8cf", "#d89161"
"""The ends of the scale of a heat map, pale enough to read numbers on them."""
FEWEST = (3, 2)
"""Minimum numbers of entries and columns of Friedman's test."""
DIGITS = 12
"""Equal outcomes in another order differ in the last bits of their means."""


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


def write_tiers(tables: Sequence[BoardTable], folder: Path) -> list[Path]:
    """Write the tiers of each table that has any as an SVG file."""
    forests = {table.label: make_tier_forest(make_frame(table)) for table in tables}
    drawn = {name: draw_forests([forest]) for name, forest in forests.items() if forest}
    return save_figures({label: {"tiers": figure} for label, figure in drawn.items()}, folder)


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
    gained = [row for row in board.rows if row.gain]
    gains = [mark_gain(row, row.gain) for row in gained if row.gain]
    tuned = [mark_gain(row, row.gain_tuned) for row in board.rows if row.gain_tuned]
    source_gains = [mark_gain(row, row.source_gain) for row in board.rows if row.source_gain]
    accuracies = [mark_accuracy(r, r.overall.mean, r.overall.ci95) for r in board.rows if r.overall]
    in_domain = [
        mark_accuracy(r, r.source_accuracy) for r in board.rows if r.source_accuracy is not None
    ]
    costs = {row.name: row.costs["flops"] / 1e12 for row in gained}
    cost_marks = [Mark(name, cost, symbol=COST, text=f"{cost:.4g}") for name, cost in costs.items()]
    on_targets = Panel(f"targets: {OVER_PLAIN}", gains, 0.0)
    on_tuned = Panel(f"targets: gain over {TUNED_NORMAL} (points), {INTERVAL}", tuned, 0.0)
    on_source = Panel(f"source: {OVER_PLAIN}", source_gains, 0.0)
    cost = Panel("operations of a run (TFLOPs)", cost_marks if len({*costs.values()}) > 1 else [])
    accuracy = Panel(ON_TARGETS, accuracies), Panel("accuracy on the source (%)", in_domain)
    panels: dict[str, tuple[str, Sequence[Panel]]] = {
        "gains": (f"Gains on the targets{count_gains(gains)}", [on_targets]),
        "gains_tuned": (f"Gains on the targets{count_gains(tuned, TUNED_NORMAL)}", [on_tuned]),
        "in_domain_gains": (f"Gains on the source{count_gains(source_gains)}", [on_source]),
        "in_domain": ("Accuracy on the targets and on the source", accuracy),
        "carry": ("Gains on the targets and on the source", [on_targets, on_source]),
        "cost": ("Gain and cost of pretraining", [on_targets, cost]),
        "spread": (
            "Spread over seeds and over episodes",
            [Panel(ON_TARGETS, [*mark_spread(board)])],
        ),
    }
    track = f"{board.track}: " if board.track else ""
    title = f"{track}Gains over {PLAIN} by data set and shots"
    return {
        "targets": draw_columns(board, gained, "normal", title),
        **{n: draw_method_rows(board, of, f"{track}{title}") for n, (title, of) in panels.items()},
    }


def mark_gain(row: MethodRow, gain: Gain) -> Mark:
    """Return a gain in points."""
    symbol = ONE_SEED if len(gain.seeds) == 1 else LEVEL
    if gain.significant:
        symbol = UP if gain.gap > 0 else DOWN
    half = None if gain.ci95 is None else 100 * gain.ci95
    return Mark(row.name, 100 * gain.gap, half, symbol, to_percent(gain.gap, "+"))


def mark_accuracy(row: MethodRow, mean: float, half: float | None = None) -> Mark:
    """Return an accuracy in percent."""
    symbol = MEASURED[len(row.seeds) == 1]
    return Mark(row.name, 100 * mean, half and 100 * half, symbol, to_percent(mean))


def mark_spread(board: MethodBoard) -> Iterator[Mark]:
    """Yield both intervals of the overall accuracy of rows with several seeds."""
    symbols = (
        Symbol("over episodes, for these seeds", GAIN),
        Symbol("over episodes and seeds", LOSS, "s"),
    )
    for row in board.rows:
        if (score := row.overall) and score.ci95 is not None and score.ci95_seeds is not None:
            for half, symbol in zip((score.ci95, score.ci95_seeds), symbols, strict=True):
                yield Mark(row.name, 100 * score.mean, 100 * half, symbol, f"±{to_percent(half)}")


def count_gains(gains: Sequence[Mark], control: str = PLAIN) -> str:
    """Return how many of these gains over a control are significant, as the end of a title."""
    up, down = (sum(mark.symbol == symbol for mark in gains) for symbol in (UP, DOWN))
    return f": of {len(gains)}, {up} significantly above {control}, {down} below"


def draw_method_rows(board: MethodBoard, panels: Sequence[Panel], title: str) -> "Figure | None":
    """Return the rows that all panels have, the highest of the first panel on top.

    None without a row, and without two to compare in several panels.
    """
    shared = set.intersection(*({mark.row for mark in panel.marks} for panel in panels))
    if len(shared) < len(panels):
        return None
    seeds = {row.name: format_count(len(row.seeds), "seed") for row in board.rows}
    marks = sorted(panels[0].marks, key=lambda mark: -mark.value)
    rows = {mark.row: f"{mark.row}, {seeds[mark.row]}" for mark in marks if mark.row in shared}
    shown = [p._replace(marks=[m for r in rows for m in p.marks if m.row == r]) for p in panels]
    return draw_forests([Forest(rows, shown)], title=title)


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
    heads = name_columns(board.columns)
    labels = [f"{shots} {rest}".strip() for _, shots, rest in heads]
    values = np.full((len(rows), len(heads)), math.nan)
    for (i, j), gain in gains.items():
        values[i, j] = 100 * gain.gap
    largest = float(np.nanmax(abs(values))) or 1.0
    norm = SymLogNorm(min(1.0, largest), vmin=-largest, vmax=largest)
    key = "gain in points; bold: the 95 % interval excludes 0"
    figure, middles, above = create_heat_map(
        [row.name for row in rows], labels, values, norm, key, title
    )
    axes = figure.axes[0]
    for (i, j), gain in gains.items():
        weight = "bold" if gain.ci95 is not None and abs(gain.gap) > gain.ci95 else "normal"
        style: dict[str, Any] = {"size": 8.5, "weight": weight, "ha": "center", "va": "center"}
        axes.text(j + 0.5, middles[i], f"{100 * gain.gap:+.1f}", **style)
    first = 0
    for name, of_dataset in groupby(heads, lambda head: head[0]):
        last = first + len(list(of_dataset))
        axes.axvline(first, color=PAPER, linewidth=5)
        place: dict[str, Any] = {"textcoords": "offset points", "ha": "center"}
        middle = (first + last) / 2
        axes.annotate(name, (middle, 1), (0, above), ("data", "axes fraction"), **place)
        first = last
    return figure


def create_heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: NDArray[np.float64],
    norm: "Normalize",
    key: str,
    title: str,
    beside: float = 0.0,
) -> "tuple[Figure, list[float], float]":
    """Return a figure of coloured squares (rows, columns) and the scale of their colours.

    Then the middles of the rows, and the height of the names of the columns on top. beside: room on
    the right.
    """
    from matplotlib.colors import LinearSegmentedColormap

    longest = max(map(len, columns))
    is_upright = longest > 7 or len(columns) > 8
    above = 8 + (6.3 * longest if is_upright else 10)
    width = max(plotting.find_width(None), 230 + beside + 38 * len(columns))
    names, edges = fold_names(rows, width)
    figure = plotting.create_figure(width, ROW * edges[-1] + above + 80, title)
    axes = figure.add_subplot()
    middles = name_rows(axes, names, edges)
    colours = LinearSegmentedColormap.from_list("gains", [PALE_LOSS, PAPER, PALE_GAIN], N=41)
    corners, shown = np.arange(len(columns) + 1), np.ma.masked_invalid(values)
    mesh = axes.pcolormesh(corners, edges, shown, cmap=colours, norm=norm, edgecolors=PAPER)
    axes.set_xticks(corners[:-1] + 0.5, columns, rotation=90 * is_upright)
    axes.tick_params(length=0, labelbottom=False, labeltop=True)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(mesh, ax=axes, orientation="horizontal", label=key, aspect=60, pad=0.01)
    ticks = sorted({norm.vmin or 0.0, -1.0, 0.0, 1.0, norm.vmax or 0.0})
    bar.set_ticks(ticks, labels=[f"{tick:+.3g}" if tick else "0" for tick in ticks])
    return figure, middles, above


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
    marks = [Mark(names[i], ranks[i], text=f"{ranks[i]:.2f}") for i in order]
    shown = "< .001" if p < 0.001 else f"{p:.2g}"
    x = f"average rank; a bar joins what does not differ at {alpha:g}"
    figure = draw_forests(
        [Forest({mark.row: mark.row for mark in marks}, [Panel(x, marks)])],
        title=f"Average ranks over {len(means)} columns (Friedman's p {shown})",
    )
    [axes] = figure.axes
    middles, values = axes.get_yticks(), [mark.value for mark in marks]
    span = max(values[-1] - values[0], 1.0)
    for k, rows in enumerate(list_cliques(values, difference)):
        at = values[-1] + span * (0.15 + 0.03 * k)
        axes.plot([at, at], middles[list(rows)], color=SERIES[0], linewidth=4)
    axes.set_ylim(top=-1.2)
    axes.plot([values[0], values[0] + difference], [-0.4, -0.4], "|-", color=INK)
    axes.annotate(f"critical difference {difference:.2f}", (values[0], -0.7))
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
    labels, shown = [*positions], [*positions.values()]
    choices = [stability.choices[position] for position in shown]
    firsts = [f"{len(c.tier)} of {len(c.ranks)}: {clean_text(', '.join(c.first))}" for c in choices]
    taus = np.array(stability.taus, np.float64)[np.ix_(shown, shown)]  # None becomes nan
    key = "Kendall's tau; on the right, entries in tier 1 and the first of them"
    beside = 6.6 * max(map(len, firsts))
    scale = Normalize(-1, 1)
    figure, middles, _ = create_heat_map(labels, labels, taus, scale, key, title, beside)
    axes = figure.axes[0]
    for i, first in enumerate(firsts):
        for j in np.flatnonzero(~np.isnan(taus[i])).tolist():
            style: dict[str, Any] = {"size": 8.5, "ha": "center", "va": "center"}
            axes.text(j + 0.5, middles[i], f"{taus[i, j]:.2f}", **style)
        axes.text(
            1.02, middles[i], first, transform=axes.get_yaxis_transform(), va="center_baseline"
        )
    return figure
