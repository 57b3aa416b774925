"""Figures of a method board, one for each question, drawn from its record alone.

    gains       which methods gain over plain training, and which gains survive Holm's correction
    targets     gains by column
    adaptation  gains with affine tuning against gains with linear heads
    in_domain   accuracy on the targets against accuracy on the source
    cost        gains against the cost of pretraining
    spread      spread over pretraining seeds, beside that over episodes
    episodes    how many episodes would settle the gains that are still open

A question that the board cannot answer has no figure.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from fsbench.core import statistics
from fsbench.core.plotting import write_figure
from fsbench.core.statistics import Goal, episodes_needed
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.figures import Mark, draw_bars, draw_gaps, draw_heat_map, draw_scatter
from leaderboard.methods.record import ControlKind, Gain, InDomainGain, MethodBoard, MethodRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAIN = "plain training"
GAIN = f"gain over {PLAIN} (points)"


def write_figures(boards: Sequence[MethodBoard], folder: Path) -> list[Path]:
    """Write the figures of all tables as SVG files and return their paths.

    Where there are several tables, the track begins the name of a file.
    """
    paths = []
    for board in boards:
        track = re.sub(r"\W+", "-", board.track).strip("-") + "-" if len(boards) > 1 else ""
        others = [other for other in boards if other is not board]
        for name, figure in draw_figures(board, others).items():
            paths.append(folder / f"{track}{name}.svg")
            write_figure(figure, paths[-1])
    return paths


def draw_figures(board: MethodBoard, others: Sequence[MethodBoard] = ()) -> "dict[str, Figure]":
    """Return figures by name. others: other tables of the board."""
    figures = {name: draw(board) for name, draw in QUESTIONS.items()}
    figures["adaptation"] = draw_adaptation(board, (board, *others))
    return {name: figure for name, figure in figures.items() if figure}


def name_figure(board: MethodBoard, title: str) -> str:
    return f"{title}, {board.track}" if board.track else title


def mark_gain(row: MethodRow, gain: Gain | InDomainGain, alpha: float, x: float = 0.0) -> Mark:
    """Return a gain in points; the gain of one seed is never significant."""
    return Mark(
        row.name,
        100 * gain.gap,
        in_percent(gain.interval),
        significant=gain.is_significant(alpha),
        single=len(gain.seeds) == 1,
        x=x,
    )


def in_percent(interval: tuple[float | None, float | None]) -> tuple[float, float] | None:
    """Return an interval of fractions in percent, None if it is unknown."""
    low, high = interval
    return None if low is None or high is None else (100 * low, 100 * high)


def list_gains(board: MethodBoard) -> list[tuple[MethodRow, Gain]]:
    """Return rows with their overall gain over plain training, best first."""
    rows = [row for row in board.rows if row.overall and "normal" in row.overall.gains]
    return [(row, row.overall.gains["normal"]) for row in rows if row.overall]


def draw_gains(
    board: MethodBoard, gains: Sequence[tuple[MethodRow, Gain | InDomainGain]], title: str
) -> "Figure | None":
    """Draw gains by row, coloured after Holm's correction, with the number of seeds."""
    marks = []
    for row, gain in gains:
        name = f"{row.name}, {len(gain.seeds)} seed{'s' if len(gain.seeds) > 1 else ''}"
        marks.append(replace(mark_gain(row, gain, board.alpha), name=name))
    return draw_gaps(marks, name_figure(board, title), PLAIN) if marks else None


def draw_carry(board: MethodBoard) -> "Figure | None":
    """Draw the gains on the targets against those on the source."""
    marks = [
        mark_gain(row, gain, board.alpha, x=100 * row.source_gain.gap)
        for row, gain in list_gains(board)
        if row.source_gain
    ]
    title = name_figure(board, "Gains on the source and on the targets")
    x, y = f"source: {GAIN}", f"targets: {GAIN}"
    return draw_scatter(marks, title, x, y, level=True) if len(marks) > 1 else None


def draw_targets(board: MethodBoard) -> "Figure | None":
    """Draw the gains of each column."""
    rows = [row for row, _ in list_gains(board)]
    title = name_figure(board, f"Gains over {PLAIN} by column")
    return draw_columns(board, rows, "normal", title) if rows else None


def draw_columns(
    board: MethodBoard, rows: Sequence[MethodRow], control: ControlKind, title: str
) -> "Figure":
    """Draw the gains of these rows over a kind of control, by column."""
    marks = [
        [
            mark_gain(row, row.cells[column].gains[control], board.alpha)
            if column in row.cells and control in row.cells[column].gains
            else None
            for column in board.columns
        ]
        for row in rows
    ]
    names, columns = [row.name for row in rows], shorten_columns(board.columns)[0]
    return draw_heat_map(names, columns, marks, title)


def draw_adaptation(board: MethodBoard, boards: Sequence[MethodBoard]) -> "Figure | None":
    """Draw gains of affine tuning against those of linear heads, in tasks and seeds with both.

    Linear columns may have a table of their own, with more seeds for each row.
    """
    marks = []
    for other in boards:
        both = {c: t for c in board.columns if (t := linear_twin(c)) in other.columns}
        rows = product(board.rows, other.rows) if both else ()
        for row, twin in ((r, t) for r, t in rows if set(r.entries) <= set(t.entries)):
            x, y = average_by_seed(twin, [*both.values()]), average_by_seed(row, [*both])
            seeds = sorted(x.keys() & y.keys())
            if seeds:
                linear, affine = (100 * mean(gains[seed] for seed in seeds) for gains in (x, y))
                marks.append(Mark(twin.name, affine, single=len(seeds) == 1, x=linear))
    title = name_figure(board, "Gains of linear heads and of affine tuning")
    x_label, y_label = f"linear heads: {GAIN}", f"affine tuning: {GAIN}"
    if not marks:
        return None
    return draw_scatter(marks, title, x_label, y_label, level=True, diagonal=True)


def linear_twin(column: str) -> str | None:
    """Return the column of linear heads on the task of an affine one; None for other columns."""
    identity = ColumnId.parse(column)
    task = replace(identity.task, head="linear")
    return str(replace(identity, task=task)) if identity.task.head == "affine" else None


def average_by_seed(row: MethodRow, columns: Sequence[str]) -> dict[int, float]:
    """Return the mean gain over these columns by seed, {} where a column has no gain."""
    gains = [row.cells[c].gains.get("normal") if c in row.cells else None for c in columns]
    by_seed = [dict(zip(gain.seeds, gain.by_seed, strict=True)) for gain in gains if gain]
    if len(by_seed) < len(columns):
        return {}
    seeds = set.intersection(*map(set, by_seed))
    return {seed: mean(column[seed] for column in by_seed) for seed in seeds}


def mark_accuracy(row: MethodRow, x: float, front: bool = False) -> Mark | None:
    """Return the overall accuracy of a row in percent, None for a row without one."""
    if row.overall is None:
        return None
    mean, interval = 100 * row.overall.mean, in_percent(row.overall.interval)
    return Mark(row.name, mean, interval, single=row.n_seeds == 1, x=x, front=front)


def draw_in_domain(board: MethodBoard) -> "Figure | None":
    """Draw accuracy on the targets against accuracy on the source."""
    rows = [row for row in board.rows if row.source_accuracy is not None]
    marks = [m for row in rows if (m := mark_accuracy(row, 100 * (row.source_accuracy or 0)))]
    title = name_figure(board, "Accuracy on the source and on the targets")
    x, y = "validation accuracy on the source (%)", "mean accuracy on the targets (%)"
    return draw_scatter(marks, title, x, y) if len(marks) > 1 else None


def draw_cost(board: MethodBoard) -> "Figure | None":
    """Draw gains against floating-point operations, which unlike hours fit any machine.

    None if all runs cost the same.
    """
    gains = list_gains(board)
    marks = [mark_gain(r, gain, board.alpha, x=r.costs.flops / 1e12) for r, gain in gains]
    title, x = name_figure(board, "Gain and cost"), "operations of a pretraining run (TFLOPs)"
    is_worth_it = len({mark.x for mark in marks}) > 1
    return draw_scatter(marks, title, x, GAIN, level=True) if is_worth_it else None


def draw_spread(board: MethodBoard) -> "Figure | None":
    """Draw both half-widths of the interval of the overall accuracy, for several seeds."""
    halves = {
        row.name: (100 * row.overall.ci95, 100 * row.overall.ci95_seeds)
        for row in board.rows
        if row.overall and row.overall.ci95 is not None and row.overall.ci95_seeds is not None
    }
    title = name_figure(board, "Spread over seeds and over episodes")
    series = {
        "over episodes, for these seeds": [episodes for episodes, _ in halves.values()],
        "over episodes and seeds": [both for _, both in halves.values()],
    }
    unit = "half-width of the 95 % interval (points)"
    return draw_bars([*halves], series, title, unit) if halves else None


def draw_episodes(board: MethodBoard) -> "Figure | None":
    """Draw the episodes for each column that detect a gap of the measured size (power 0.8).

    Where pretraining seeds are what is uncertain, more episodes do not help.
    """
    columns = len(board.columns)
    unsettled = {
        row.name: gain
        for row, gain in list_gains(board)
        if gain.p_holm >= board.alpha and gain.covers == "episodes" and gain.ci95 and gain.gap != 0
    }
    if not unsettled:
        return None
    return draw_bars(
        [*unsettled],
        {"episodes": [count_episodes_needed(gain, columns) for gain in unsettled.values()]},
        name_figure(board, "Episodes that would settle what is open"),
        f"episodes that would separate the method from {PLAIN} (dashed: episodes run)",
        log=True,
        reference=max(gain.n / columns for gain in unsettled.values()),
    )


def count_episodes_needed(gain: Gain, columns: int) -> int:
    """Return episodes for each column, by the z test of core/statistics.py, uncorrected."""
    n = gain.n / columns
    sd = (gain.ci95 or 0.0) / statistics.Z95 * math.sqrt(n)
    return episodes_needed(sd, Goal(gap=abs(gain.gap)))


QUESTIONS: "dict[str, Callable[[MethodBoard], Figure | None]]" = {
    "gains": lambda board: draw_gains(board, list_gains(board), "Gains on the targets"),
    "targets": draw_targets,
    "in_domain": draw_in_domain,
    "in_domain_gains": lambda board: draw_gains(
        board,
        [(row, row.source_gain) for row in board.rows if row.source_gain],
        "Gains on the source",
    ),
    "carry": draw_carry,
    "cost": draw_cost,
    "spread": draw_spread,
    "episodes": draw_episodes,
}
