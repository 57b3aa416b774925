"""Charts of a whole track, drawn for a desk and for a phone when the site is built."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from fsbench.core.panels import Curve, Panel, draw_panels
from fsbench.core.plotting import Drawing
from fsbench.core.specs import EpisodicSpec
from fsbench.core.statistics import Z95
from leaderboard.board.tables import BoardTable
from leaderboard.charts import critical, heat_map, scatter
from leaderboard.methods.board import build_from_table
from leaderboard.methods.figures import build_heat_map
from leaderboard.methods.record import ControlKind, MethodBoard
from leaderboard.ranking.summary import BoardStatistics, list_caveats
from leaderboard.site import packing

PHONE, HALF, WHOLE = 358, 590, 1180
"""Pixels of a drawing on a phone, and of one that takes half or all of the width of a desk."""
MOST = 24
"""Entries of a critical-difference diagram, best first, and methods of a heat map."""
MOST_CURVES = 6
"""Lines that a reader can distinguish."""
KINDS: dict[ControlKind, str] = {
    "normal": "plain training of matched compute",
    "other_schedule": "plain training under the other schedule",
    "random_init": "the network before training",
}
LAST: ControlKind = "random_init"
"""The control of a heat map where there is no other."""
ChartRecord = dict[str, Any]
"""Title, note and drawings of a chart, as the page stores them."""


def draw_track(table: BoardTable, statistics: BoardStatistics) -> list[ChartRecord]:
    """Return every chart that the track has the data for."""
    if not table.names:
        return []
    methods = build_from_table(table)
    charts = (draw_heat_maps(methods), draw_costs(methods), draw_shots(table))
    return [*chain(*charts), *draw_ranks(statistics)]


def draw_chart(
    title: str, note: str, draw: Callable[[float], Drawing], width: int = HALF
) -> ChartRecord:
    """Return a chart drawn for a desk and for a phone."""
    slug = "".join(c if c.isalnum() else "-" for c in title.lower())
    drawings = [draw(pixels).to_svg(f"{slug}-{pixels}") for pixels in (width, PHONE)]
    return {"title": title, "note": note, "whole": width == WHOLE, "drawings": drawings}


def note_best(drawn: Collection[object], entries: Collection[object]) -> str:
    """Return a sentence where not all are drawn."""
    return f" The best {len(drawn)} of {len(entries)}." if len(drawn) < len(entries) else ""


def draw_heat_maps(board: MethodBoard) -> Iterator[ChartRecord]:
    """Yield gains of each method over its controls, by column: a map for each kind of control."""
    rows_by_kind = {
        kind: [row for row in board.rows if any(kind in c.gains for c in row.cells.values())]
        for kind in KINDS
    }
    has_trained_control = any(rows for kind, rows in rows_by_kind.items() if kind != LAST)
    for kind, words in KINDS.items():
        rows = rows_by_kind[kind]
        if not rows or (kind == LAST and has_trained_control):
            continue
        chart = build_heat_map(board, rows[:MOST], kind, f"Gain over {words}")
        note = f"Methods by columns, in points over {words}; a dot where the interval excludes 0."
        note += note_best(chart.rows, rows)
        yield draw_chart(chart.title, note, partial(heat_map.draw, chart), WHOLE)


def draw_costs(board: MethodBoard) -> Iterator[ChartRecord]:
    """Yield accuracy against the cost of pretraining."""
    points = tuple(
        scatter.Point(
            row.name,
            row.costs.flops,
            row.overall.mean,
            *row.overall.interval,
            single=row.n_seeds == 1,
        )
        for row in board.rows
        if row.overall is not None and row.costs.flops > 0
    )
    if len({point.x for point in points}) > 1:
        chart = scatter.Scatter(
            title="Accuracy against cost",
            x="FLOPs of pretraining",
            y="accuracy (%)",
            points=points,
            percent_x=False,
            log_x=True,
            front=True,
        )
        note = (
            "Overall accuracy in percent; the line is the Pareto front (best for its cost). "
            "Hollow: one pretraining seed. Methods of equal cost lie side by side."
        )
        yield draw_chart(chart.title, note, partial(scatter.draw, chart))


def draw_shots(table: BoardTable) -> Iterator[ChartRecord]:
    """Yield the mean over the data sets at each number of shots, for the best entries."""
    for adaptation, columns_by_shots in group_by_shots(table).items():
        columns = {column for group in columns_by_shots.values() for column in group}
        contenders = table.contenders
        complete = [name for name in table.names if columns <= contenders[name].keys()]
        chart = Panel(
            title=f"Accuracy by shots, {adaptation}",
            x="shots (images per class)",
            y="accuracy (%)",
            curves=tuple(build_curve(table, n, columns_by_shots) for n in complete[:MOST_CURVES]),
            log_x=True,
        )
        note = "Mean over the data sets, best entries first; bands are 95 % intervals."
        yield draw_chart(chart.title, note, partial(draw_panels, [chart], chart.title))


def group_by_shots(table: BoardTable) -> dict[str, dict[int, list[str]]]:
    """Return columns by adaptation and shots, of data sets with every number of shots.

    An adaptation with one number of shots is left out.
    """
    columns: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for column in table.ranking.columns:
        cell = next((cells[column] for cells in table.results.values() if column in cells), None)
        if cell and isinstance(cell.result.spec, EpisodicSpec):
            spec = cell.result.spec
            columns[spec.adaptation][cell.result.dataset.name][spec.episode.k_shot] = column
    groups = {}
    for adaptation, datasets in columns.items():
        shots = sorted({k for by_shots in datasets.values() for k in by_shots})
        complete = [by_shots for by_shots in datasets.values() if len(by_shots) == len(shots)]
        if len(shots) > 1 and complete:
            groups[adaptation] = {k: [by_shots[k] for by_shots in complete] for k in shots}
    return groups


def build_curve(table: BoardTable, name: str, columns_by_shots: dict[int, list[str]]) -> Curve:
    """Return means and 95 % intervals of an entry by shots, in percent."""
    outcomes, groups = table.contenders[name], columns_by_shots.values()
    means = [float(np.mean([outcomes[c].values.mean() for c in columns])) for columns in groups]
    halves = [Z95 * packing.estimate_overall_error(outcomes, columns) for columns in groups]
    ends = [*zip(means, halves, strict=True)] if not any(np.isnan(halves)) else []
    return Curve(
        label=name,
        x=tuple(columns_by_shots),
        y=tuple(100 * m for m in means),
        low=tuple(100 * (m - half) for m, half in ends),
        high=tuple(100 * (m + half) for m, half in ends),
    )


def draw_ranks(statistics: BoardStatistics) -> Iterator[ChartRecord]:
    """Yield average ranks over the columns and the cliques within the critical difference."""
    friedman = statistics.friedman
    if friedman is None:
        return
    names = tuple(friedman.average_ranks)[:MOST]
    chart = critical.Critical(
        title="Critical difference",
        names=names,
        ranks=tuple(friedman.average_ranks[name] for name in names),
        difference=friedman.critical_difference,
        cliques=friedman.cliques,
        alpha=friedman.alpha,
    )
    note = (
        f"Average ranks over {friedman.columns} columns; bars join what Nemenyi's test does not "
        f"separate at {friedman.alpha:g} (Friedman p = {friedman.p:.2g})."
        f"{note_best(names, friedman.average_ranks)}"
    )
    note = " ".join((note, *list_caveats(friedman, statistics.columns)))
    yield draw_chart(chart.title, note, partial(critical.draw, chart))
