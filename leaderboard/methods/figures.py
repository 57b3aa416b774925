"""Figures of a method board, one for each question, drawn from its record alone.

    gains            gains over plain training, and which of them survive Holm's correction
    targets          gains by column
    in_domain        accuracy on the targets against accuracy on the source
    in_domain_gains  gains on the source
    carry            gains on the targets against gains on the source
    cost             gains against the cost of pretraining, in operations, which fit any machine
    spread           half-widths of intervals over episodes, and over episodes and seeds
    adaptation       gains with affine tuning against gains with linear heads

A question that the board cannot answer has no figure.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from fsbench.core.plotting import write_figure
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.figures import Mark, draw_bars, draw_gaps, draw_heat_map, draw_scatter
from leaderboard.methods.record import ControlKind, Gain, MethodBoard, MethodRow

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
    gains = [(row, row.gain) for row in board.rows if row.gain]
    on_source = [(row, row.source_gain) for row in board.rows if row.source_gain]
    both = [(row, gain, row.source_gain) for row, gain in gains if row.source_gain]
    alpha = board.alpha
    costs = [mark_gain(row, gain, alpha, x=row.costs.flops / 1e12) for row, gain in gains]

    def title(words: str) -> str:
        return f"{words}, {board.track}" if board.track else words

    figures = {
        "gains": draw_gains(gains, alpha, title("Gains on the targets")),
        "targets": draw_columns(
            board, [row for row, _ in gains], "normal", title(f"Gains over {PLAIN} by column")
        )
        if gains
        else None,
        "in_domain": draw_points(
            [
                mark
                for row in board.rows
                if row.source_accuracy is not None
                and (mark := mark_accuracy(row, 100 * row.source_accuracy))
            ],
            title("Accuracy on the source and on the targets"),
            "validation accuracy on the source (%)",
            "mean accuracy on the targets (%)",
        ),
        "in_domain_gains": draw_gains(on_source, alpha, title("Gains on the source")),
        "carry": draw_points(
            [mark_gain(row, gain, alpha, x=100 * source.gap) for row, gain, source in both],
            title("Gains on the source and on the targets"),
            f"source: {GAIN}",
            f"targets: {GAIN}",
            level=True,
        ),
        "cost": draw_points(
            costs if len({mark.x for mark in costs}) > 1 else [],
            title("Gain and cost"),
            "operations of a pretraining run (TFLOPs)",
            GAIN,
            level=True,
        ),
        "spread": draw_spread(board, title("Spread over seeds and over episodes")),
        "adaptation": draw_points(
            compare_heads(board, (board, *others)),
            title("Gains of linear heads and of affine tuning"),
            f"linear heads: {GAIN}",
            f"affine tuning: {GAIN}",
            level=True,
            diagonal=True,
        ),
    }
    return {name: figure for name, figure in figures.items() if figure}


def mark_gain(row: MethodRow, gain: Gain, alpha: float, x: float = 0.0) -> Mark:
    """Return a gain in points; the gain of one seed is never significant."""
    significant = gain.is_significant(alpha)
    return Mark.in_percent(
        row.name, gain.gap, gain.ci95, x, significant=significant, single=len(gain.seeds) == 1
    )


def mark_accuracy(row: MethodRow, x: float, front: bool = False) -> Mark | None:
    """Return the overall accuracy of a row in percent, None for a row without one."""
    if (score := row.overall) is None:
        return None
    single = len(row.seeds) == 1
    return Mark.in_percent(row.name, score.mean, score.ci95, x, single=single, front=front)


def draw_points(
    marks: Sequence[Mark],
    title: str,
    x: str,
    y: str,
    *,
    level: bool = False,
    diagonal: bool = False,
) -> "Figure | None":
    """Draw marks as draw_scatter does; None for fewer than two."""
    if len(marks) < 2:
        return None
    return draw_scatter(marks, title, x, y, level=level, diagonal=diagonal)


def draw_gains(
    gains: Sequence[tuple[MethodRow, Gain]], alpha: float, title: str
) -> "Figure | None":
    """Draw gains by row, coloured after Holm's correction, with the number of seeds."""
    marks = []
    for row, gain in gains:
        name = f"{row.name}, {len(gain.seeds)} seed{'s' if len(gain.seeds) > 1 else ''}"
        marks.append(replace(mark_gain(row, gain, alpha), name=name))
    return draw_gaps(marks, title, PLAIN) if marks else None


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


def draw_spread(board: MethodBoard, title: str) -> "Figure | None":
    """Draw both half-widths of the interval of the overall accuracy, for several seeds."""
    halves = {
        row.name: (100 * score.ci95, 100 * score.ci95_seeds)
        for row in board.rows
        if (score := row.overall) and score.ci95 is not None and score.ci95_seeds is not None
    }
    series = {
        "over episodes, for these seeds": [episodes for episodes, _ in halves.values()],
        "over episodes and seeds": [both for _, both in halves.values()],
    }
    unit = "half-width of the 95 % interval (points)"
    return draw_bars([*halves], series, title, unit) if halves else None


def compare_heads(board: MethodBoard, boards: Sequence[MethodBoard]) -> list[Mark]:
    """Return gains of affine tuning over those of linear heads, in tasks and seeds with both.

    Linear columns may have a table of their own, with more seeds for each row.
    """
    marks = []
    for other in boards:
        both = {c: t for c in board.columns if (t := linear_twin(c)) in other.columns}
        rows = product(board.rows, other.rows) if both else ()
        for row, twin in ((r, t) for r, t in rows if r.entry == t.entry):
            x, y = average_by_seed(twin, [*both.values()]), average_by_seed(row, [*both])
            seeds = sorted(x.keys() & y.keys())
            if seeds:
                linear, affine = (100 * mean(gains[seed] for seed in seeds) for gains in (x, y))
                marks.append(Mark(twin.name, affine, single=len(seeds) == 1, x=linear))
    return marks


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
