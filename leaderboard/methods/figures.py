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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean

from fsbench.core import statistics
from fsbench.core.plotting import Drawing, write_figure
from fsbench.core.statistics import Goal, episodes_needed
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.charts import bars, gaps, heat_map, scatter
from leaderboard.methods.record import (
    ControlKind,
    Gain,
    InDomainGain,
    MethodBoard,
    MethodRow,
    MethodScore,
)

WIDTH = 760.0
"""CSS pixels: a README's column."""
GAIN = "gain over plain training (points)"


def write_figures(boards: Sequence[MethodBoard], folder: Path) -> list[Path]:
    """Write the figures of all tables as SVG files and return their paths.

    Where there are several tables, the track begins the name of a file.
    """
    paths = []
    for board in boards:
        track = re.sub(r"\W+", "-", board.track).strip("-") + "-" if len(boards) > 1 else ""
        others = [other for other in boards if other is not board]
        for name, drawing in draw_figures(board, others).items():
            paths.append(folder / f"{track}{name}.svg")
            write_figure(drawing, paths[-1])
    return paths


def draw_figures(board: MethodBoard, others: Sequence[MethodBoard] = ()) -> dict[str, Drawing]:
    """Return drawings by name. others: other tables of the board."""
    drawings = {name: draw(board) for name, draw in QUESTIONS.items()}
    drawings["adaptation"] = draw_adaptation(board, (board, *others))
    return {name: drawing for name, drawing in drawings.items() if drawing}


def name_figure(board: MethodBoard, title: str) -> str:
    return f"{title}, {board.track}" if board.track else title


def list_gains(board: MethodBoard) -> Iterator[tuple[MethodRow, MethodScore, Gain]]:
    """Yield rows with their overall cell and its gain over plain training, best first."""
    for row in board.rows:
        gain = row.overall.gains.get("normal") if row.overall else None
        if row.overall and gain:
            yield row, row.overall, gain


def draw_gains(board: MethodBoard) -> Drawing | None:
    """Draw the overall gains, coloured after Holm's correction."""
    gains = [(row.name, gain) for row, _, gain in list_gains(board)]
    return draw_gaps(board, name_figure(board, "Gains over plain training"), gains)


def draw_in_domain_gains(board: MethodBoard) -> Drawing | None:
    """Draw the gains in accuracy on the source, coloured after Holm's correction."""
    gains = [(row.name, row.source_gain) for row in board.rows if row.source_gain]
    title = name_figure(board, "Gains over plain training on the source")
    return draw_gaps(board, title, gains)


def draw_gaps(
    board: MethodBoard, title: str, gains: Sequence[tuple[str, Gain | InDomainGain]]
) -> Drawing | None:
    """Draw gains by row, largest first.

    The number of seeds stands beside a name; the gain of one seed is never significant.
    """
    rows = [
        gaps.GapRow(
            f"{name}, {len(gain.seeds)} seed{'s' if len(gain.seeds) > 1 else ''}",
            gain.gap,
            *gain.interval,
            significant=gain.is_significant(board.alpha),
            single=len(gain.seeds) == 1,
        )
        for name, gain in sorted(gains, key=lambda item: -item[1].gap)
    ]
    chart = gaps.GapChart(
        title=title,
        a="method",
        b="plain training",
        rows=tuple(rows),
        criterion="after Holm's correction the gain lies",
    )
    return gaps.draw(chart, WIDTH) if rows else None


def draw_carry(board: MethodBoard) -> Drawing | None:
    """Draw the gains on the targets against those on the source."""
    points = [
        scatter.Point(
            row.name,
            row.source_gain.gap,
            gain.gap,
            *gain.interval,
            significant=gain.is_significant(board.alpha),
            single=len(gain.seeds) == 1,
        )
        for row, _, gain in list_gains(board)
        if row.source_gain
    ]
    chart = scatter.Scatter(
        title=name_figure(board, "Gains on the source and on the targets"),
        x="gain over plain training on the source (points)",
        y="gain over plain training on the targets (points)",
        points=tuple(points),
        level=0.0,
    )
    return scatter.draw(chart, WIDTH) if len(points) > 1 else None


def draw_targets(board: MethodBoard) -> Drawing | None:
    """Draw the gains of each column."""
    rows = [row for row, _, _ in list_gains(board)]
    chart = build_heat_map(
        board, rows, "normal", name_figure(board, "Gains over plain training by column")
    )
    return heat_map.draw(chart, WIDTH) if rows else None


def build_heat_map(
    board: MethodBoard, rows: Sequence[MethodRow], control: ControlKind, title: str
) -> heat_map.HeatMap:
    """Return the heat map of the gains of these rows over a kind of control, by column."""
    gains = [
        [row.cells[c].gains.get(control) if c in row.cells else None for c in board.columns]
        for row in rows
    ]
    ends = [[gain.interval if gain else (None, None) for gain in line] for line in gains]
    return heat_map.HeatMap(
        title=title,
        rows=tuple(row.name for row in rows),
        columns=tuple(shorten_columns(board.columns)[0]),
        values=tuple(tuple(gain.gap if gain else None for gain in line) for line in gains),
        low=tuple(tuple(low for low, _ in line) for line in ends),
        high=tuple(tuple(high for _, high in line) for line in ends),
        single=frozenset(i for i, row in enumerate(rows) if row.n_seeds == 1),
    )


def draw_adaptation(board: MethodBoard, boards: Sequence[MethodBoard]) -> Drawing | None:
    """Draw gains of affine tuning against those of linear heads, in tasks and seeds with both.

    Linear columns may have a table of their own, with more seeds for each row.
    """
    points: list[scatter.Point] = []
    for other in boards:
        both = {c: t for c in board.columns if (t := linear_twin(c)) in other.columns}
        rows = product(board.rows, other.rows) if both else ()
        for row, twin in ((r, t) for r, t in rows if set(r.entries) <= set(t.entries)):
            x, y = average_by_seed(twin, [*both.values()]), average_by_seed(row, [*both])
            seeds = sorted(x.keys() & y.keys())
            if seeds:
                linear, affine = (mean(gains[seed] for seed in seeds) for gains in (x, y))
                single = len(seeds) == 1
                points.append(scatter.Point(twin.name, linear, affine, single=single))
    chart = scatter.Scatter(
        title=name_figure(board, "Gains of linear heads and of affine tuning"),
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


def average_by_seed(row: MethodRow, columns: Sequence[str]) -> dict[int, float]:
    """Return the mean gain over these columns by seed, {} where a column has no gain."""
    gains = [row.cells[c].gains.get("normal") if c in row.cells else None for c in columns]
    by_seed = [dict(zip(gain.seeds, gain.by_seed, strict=True)) for gain in gains if gain]
    if len(by_seed) < len(columns):
        return {}
    seeds = set.intersection(*map(set, by_seed))
    return {seed: mean(column[seed] for column in by_seed) for seed in seeds}


def draw_in_domain(board: MethodBoard) -> Drawing | None:
    """Draw accuracy on the targets against accuracy on the source."""
    points = [
        scatter.Point(
            row.name,
            row.source_accuracy,
            row.overall.mean,
            *row.overall.interval,
            single=row.n_seeds == 1,
        )
        for row in board.rows
        if row.overall and row.source_accuracy is not None
    ]
    chart = scatter.Scatter(
        title=name_figure(board, "Accuracy on the source and on the targets"),
        x="validation accuracy on the source (%)",
        y="mean accuracy on the targets (%)",
        points=tuple(points),
    )
    return scatter.draw(chart, WIDTH) if len(points) > 1 else None


def draw_cost(board: MethodBoard) -> Drawing | None:
    """Draw gains against floating-point operations, which unlike hours fit any machine.

    None if all runs cost the same.
    """
    points = [
        scatter.Point(
            row.name,
            row.costs.flops / 1e12,
            gain.gap,
            *gain.interval,
            significant=gain.is_significant(board.alpha),
            single=len(gain.seeds) == 1,
        )
        for row, _, gain in list_gains(board)
    ]
    chart = scatter.Scatter(
        title=name_figure(board, "Gain and cost"),
        x="operations of a pretraining run (TFLOPs)",
        y=GAIN,
        points=tuple(points),
        percent_x=False,
        level=0.0,
    )
    return scatter.draw(chart, WIDTH) if len({p.x for p in points}) > 1 else None


def draw_spread(board: MethodBoard) -> Drawing | None:
    """Draw both half-widths of the interval of the overall accuracy, for several seeds."""
    rows = [
        bars.Bar(row.name, (100 * row.overall.ci95, 100 * row.overall.ci95_seeds))
        for row in board.rows
        if row.overall and row.overall.ci95 is not None and row.overall.ci95_seeds is not None
    ]
    chart = bars.BarChart(
        title=name_figure(board, "Spread over seeds and over episodes"),
        unit="half-width of the 95 % interval (points)",
        series=("over episodes, for these seeds", "over episodes and seeds"),
        rows=tuple(rows),
        write="{:.2f}".format,
    )
    return bars.draw(chart, WIDTH) if rows else None


def draw_episodes(board: MethodBoard) -> Drawing | None:
    """Draw the episodes for each column that detect a gap of the measured size (power 0.8).

    Where pretraining seeds are what is uncertain, more episodes do not help.
    """
    columns = len(board.columns)
    unsettled = [
        (row.name, gain)
        for row, _, gain in list_gains(board)
        if gain.p_holm >= board.alpha and gain.covers == "episodes" and gain.ci95 and gain.gap != 0
    ]
    chart = bars.BarChart(
        title=name_figure(board, "Episodes that would settle what is open"),
        unit="episodes needed to separate the method from plain training (dashed: episodes run)",
        series=("episodes",),
        rows=tuple(
            bars.Bar(name, (float(count_episodes_needed(gain, columns)),))
            for name, gain in unsettled
        ),
        log=True,
        reference=max((gain.n / columns for _, gain in unsettled), default=None),
    )
    return bars.draw(chart, WIDTH) if unsettled else None


def count_episodes_needed(gain: Gain, columns: int) -> int:
    """Return episodes for each column, by the z test of core/statistics.py, uncorrected."""
    n = gain.n / columns
    sd = (gain.ci95 or 0.0) / statistics.Z95 * math.sqrt(n)
    return episodes_needed(sd, Goal(gap=abs(gain.gap)))


QUESTIONS: dict[str, Callable[[MethodBoard], Drawing | None]] = {
    "gains": draw_gains,
    "targets": draw_targets,
    "in_domain": draw_in_domain,
    "in_domain_gains": draw_in_domain_gains,
    "carry": draw_carry,
    "cost": draw_cost,
    "spread": draw_spread,
    "episodes": draw_episodes,
}
