"""Figures of a method board, one for each question, drawn from its record alone.

    gains       which methods gain over plain training, and which of these survive Holm's correction
    targets     where: gains by column
    adaptation  do linear heads and affine tuning agree
    in_domain   does accuracy on the source tell transfer
    cost        what a gain costs
    spread      how far pretraining seeds scatter, beside episodes
    episodes    how many episodes would settle the gains that are still open

A question that the board cannot answer has no figure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from fsbench.core import statistics
from fsbench.core.plotting import Drawing, write_figure
from fsbench.core.power import Goal, episodes_needed
from fsbench.core.tasks import ColumnId
from leaderboard.charts import bars, gaps, heat_map, scatter
from leaderboard.methods.record import Cell, Gain, MethodBoard, Row
from leaderboard.reports.render import shorten

WIDTH = 760.0
"""CSS pixels: a README's column."""
GAIN = "gain over plain training (points)"


def figures(board: MethodBoard, others: Sequence[MethodBoard] = ()) -> dict[str, Drawing]:
    """Return drawings by name. others: other tables of the board."""
    drawings = {name: draw(board) for name, draw in QUESTIONS.items()}
    drawings["adaptation"] = adaptation(board, (board, *others))
    return {name: drawing for name, drawing in drawings.items() if drawing}


def gained(board: MethodBoard) -> Iterator[tuple[Row, Cell, Gain]]:
    """Rows with their overall cell and its gain over plain training, best first."""
    for row in board.rows:
        gain = row.overall.gains.get("normal") if row.overall else None
        if row.overall and gain:
            yield row, row.overall, gain


def ends(gain: Gain) -> tuple[float | None, float | None]:
    half = gain.ci95
    return (None, None) if half is None else (gain.gap - half, gain.gap + half)


def gains(board: MethodBoard) -> Drawing | None:
    rows = [
        gaps.GapRow(seeded(row, g), g.gap, *ends(g), g.p_holm < board.alpha)
        for row, _, g in sorted(gained(board), key=lambda item: -item[2].gap)
    ]
    criterion = "after Holm's correction the gain lies"
    chart = gaps.GapChart(
        f"{board.board}: gains", "method", "plain training", tuple(rows), criterion
    )
    return gaps.draw(chart, WIDTH) if rows else None


def seeded(row: Row, gain: Gain) -> str:
    """The row with the seeds of its gain: the interval of a single one covers episodes alone."""
    n = len(gain.seeds)
    return f"{row.name}, {n} seed{'s' if n > 1 else ''}"


def targets(board: MethodBoard) -> Drawing | None:
    rows = [row for row, _, _ in gained(board)]
    held = [[row.cells[column].gains.get("normal") for column in board.columns] for row in rows]
    limits = [[ends(gain) if gain else (None, None) for gain in line] for line in held]
    chart = heat_map.HeatMap(
        title=f"{board.board}: gains by column",
        rows=tuple(row.name for row in rows),
        columns=tuple(shorten(board.columns)[0]),
        values=tuple(tuple(gain.gap if gain else None for gain in line) for line in held),
        low=tuple(tuple(low for low, _ in line) for line in limits),
        high=tuple(tuple(high for _, high in line) for line in limits),
    )
    return heat_map.draw(chart, WIDTH) if rows else None


def adaptation(board: MethodBoard, boards: Sequence[MethodBoard]) -> Drawing | None:
    """Gains of affine tuning against those of linear heads, in the tasks and seeds that have both:
    in a table of their own, linear columns may have more seeds a row."""
    points: list[scatter.Point] = []
    for other in boards:
        both = {c: t for c in board.columns if (t := linear_twin(c)) in other.columns}
        for row, twin in twins(board, other) if both else ():
            x, y = by_seed(twin, [*both.values()]), by_seed(row, [*both])
            seeds = sorted(x.keys() & y.keys())
            if seeds:
                linear, affine = (mean(side[seed] for seed in seeds) for side in (x, y))
                points.append(scatter.Point(twin.name, linear, affine))
    chart = scatter.Scatter(
        title=f"{board.board}: linear and affine",
        x=f"linear heads: {GAIN}",
        y=f"affine tuning: {GAIN}",
        points=tuple(points),
        level=0.0,
        diagonal=True,
    )
    return scatter.draw(chart, WIDTH) if points else None


def linear_twin(column: str) -> str | None:
    """Return the column of linear heads on the task of an affine one; None for other columns."""
    identity = ColumnId.parse(column)
    task = replace(identity.task, head="linear")
    return str(replace(identity, task=task)) if identity.task.head == "affine" else None


def twins(board: MethodBoard, other: MethodBoard) -> Iterator[tuple[Row, Row]]:
    """Rows of the one and those of the other that have their entries, and maybe more."""
    for row in board.rows:
        for twin in other.rows:
            if set(row.entries) <= set(twin.entries):
                yield row, twin


def by_seed(row: Row, columns: Sequence[str]) -> dict[int, float]:
    """Seed -> gain over plain training, the mean over these columns; none where one has none."""
    found = [row.cells[c].gains.get("normal") if c in row.cells else None for c in columns]
    known = [dict(zip(gain.seeds, gain.by_seed, strict=True)) for gain in found if gain]
    if len(known) < len(columns):
        return {}
    seeds = set.intersection(*map(set, known))
    return {seed: mean(gaps[seed] for gaps in known) for seed in seeds}


def in_domain(board: MethodBoard) -> Drawing | None:
    points = [
        scatter.Point(row.name, row.source_accuracy, row.overall.mean, *around(row.overall))
        for row in board.rows
        if row.overall and row.source_accuracy is not None
    ]
    chart = scatter.Scatter(
        title=f"{board.board}: accuracy on the source and on the targets",
        x="validation accuracy on the source (%)",
        y="mean accuracy on the targets (%)",
        points=tuple(points),
    )
    return scatter.draw(chart, WIDTH) if len(points) > 1 else None


def around(cell: Cell) -> tuple[float | None, float | None]:
    return (None, None) if cell.ci95 is None else (cell.mean - cell.ci95, cell.mean + cell.ci95)


def cost(board: MethodBoard) -> Drawing | None:
    """Floating-point operations are the same on any machine, hours are not."""
    points = [
        scatter.Point(row.name, row.costs.flops / 1e12, g.gap, *ends(g), g.p_holm < board.alpha)
        for row, _, g in gained(board)
    ]
    chart = scatter.Scatter(
        title=f"{board.board}: gain and cost",
        x="operations of a pretraining run (TFLOPs)",
        y=GAIN,
        points=tuple(points),
        percent_x=False,
        level=0.0,
    )
    return scatter.draw(chart, WIDTH) if points else None


def spread(board: MethodBoard) -> Drawing | None:
    """Both as half-widths of the interval of the overall accuracy, of rows with several seeds."""
    rows = [
        bars.Bar(row.name, (100 * row.overall.ci95, 100 * row.overall.ci95_seeds))
        for row in board.rows
        if row.overall and row.overall.ci95 is not None and row.overall.ci95_seeds is not None
    ]
    chart = bars.BarChart(
        title=f"{board.board}: seeds and episodes",
        unit="half-width of the 95 % interval (points)",
        series=("over episodes, for these seeds", "over episodes and seeds"),
        rows=tuple(rows),
        write="{:.2f}".format,
    )
    return bars.draw(chart, WIDTH) if rows else None


def episodes(board: MethodBoard) -> Drawing | None:
    """Episodes a column at which a gap of the size that was seen is found four times in five."""
    columns = len(board.columns)
    unsettled = [
        (row.name, gain)
        for row, _, gain in gained(board)
        if gain.p_holm >= board.alpha and settled_by_episodes(gain)
    ]
    chart = bars.BarChart(
        title=f"{board.board}: episodes that would settle what is open",
        unit="episodes needed to separate the method from plain training (dashed: episodes run)",
        series=("episodes",),
        rows=tuple(bars.Bar(name, (float(needed(gain, columns)),)) for name, gain in unsettled),
        log=True,
        reference=max((gain.n / columns for _, gain in unsettled), default=None),
    )
    return bars.draw(chart, WIDTH) if unsettled else None


def settled_by_episodes(gain: Gain) -> bool:
    """More episodes do not help where pretraining seeds are what is uncertain."""
    return gain.covers == "episodes" and bool(gain.ci95) and gain.gap != 0


def needed(gain: Gain, columns: int) -> int:
    """Episodes a column, by the z test of fsbench/core/power.py, before any correction."""
    n = gain.n / columns
    sd = (gain.ci95 or 0.0) / statistics.Z95 * math.sqrt(n)
    return episodes_needed(sd, Goal(gap=abs(gain.gap)))


QUESTIONS: dict[str, Callable[[MethodBoard], Drawing | None]] = {
    "gains": gains,
    "targets": targets,
    "in_domain": in_domain,
    "cost": cost,
    "spread": spread,
    "episodes": episodes,
}


def write(boards: Sequence[MethodBoard], folder: Path) -> list[Path]:
    """Write the figures of all tables as SVG files and return their paths.

    Where there are several tables, the track begins the name of a file.
    """
    paths = []
    for board in boards:
        track = re.sub(r"\W+", "-", board.track).strip("-") + "-" if len(boards) > 1 else ""
        others = [other for other in boards if other is not board]
        for name, drawing in figures(board, others).items():
            path = folder / f"{track}{name}.svg"
            write_figure(drawing, path)
            paths.append(path)
    return paths
