"""Charts of a whole track, drawn for a desk and for a phone when the site is built."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from fsbench.core.errors import UsageError
from fsbench.core.panels import Curve, Panel, draw_panels
from fsbench.core.plotting import Drawing
from fsbench.core.specs import EpisodicSpec
from fsbench.core.statistics import Z95
from leaderboard.charts import critical, heat_map, scatter
from leaderboard.methods.figures import build_heat_map
from leaderboard.methods.record import ControlKind, MethodBoard
from leaderboard.ranking.friedman import is_undivided, run_friedman
from leaderboard.ranking.summary import list_caveats
from leaderboard.ranking.tiers import Ranking
from leaderboard.site import packing
from leaderboard.tables import BoardTable

PHONE, HALF, WHOLE = 358, 590, 1180
"""Pixels of a drawing on a phone, and of one that takes half or all of the width of a desk."""
MOST = 24
"""Rows of a critical-difference diagram, and methods of a heat map."""
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


def draw_methods(board: MethodBoard) -> list[ChartRecord]:
    """Return the charts of a method board: gains by column, and accuracy against cost."""
    return [*draw_heat_maps(board), *draw_costs(board)]


def draw_track(table: BoardTable) -> list[ChartRecord]:
    """Return the charts of a table that say something: accuracy by shots and average ranks."""
    return [*draw_shots(table), *draw_ranks(table)] if table.names else []


def draw_chart(
    title: str, note: str, draw: Callable[[float], Drawing], width: int = HALF, track: str = ""
) -> ChartRecord:
    """Return a chart drawn for a desk and for a phone.

    track: where charts of several tracks stand on one page, whose ids must differ.
    """
    slug = "".join(c if c.isalnum() else "-" for c in f"{track} {title}".strip().lower())
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
        yield draw_chart(chart.title, note, partial(heat_map.draw, chart), WHOLE, board.track)


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
        yield draw_chart(chart.title, note, partial(scatter.draw, chart), WHOLE, board.track)


def draw_shots(table: BoardTable) -> Iterator[ChartRecord]:
    """Yield the mean over the data sets at each number of shots, for leaders of tiers.

    Rows of one tier would hide each other, so a table of one tier has no such chart.
    """
    tiers = len(table.ranking.tiers)
    if tiers < 2:
        return
    drawn = min(tiers, MOST_CURVES)
    places = [round(i * (tiers - 1) / (drawn - 1)) for i in range(drawn)]
    leaders = {place + 1: table.ranking.tiers[place][0].name for place in places}
    for adaptation, columns_by_shots in group_by_shots(table).items():
        chart = Panel(
            title=f"Accuracy by shots, {adaptation}",
            x="shots (images per class)",
            y="accuracy (%)",
            curves=tuple(
                build_curve(table, name, columns_by_shots, f"tier {tier}: {name}")
                for tier, name in leaders.items()
            ),
            log_x=True,
        )
        note = (
            f"Mean over the data sets; the leaders of {drawn} of {tiers} tiers, with 95 % "
            "intervals over episodes."
        )
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


def build_curve(
    table: BoardTable, name: str, columns_by_shots: dict[int, list[str]], label: str
) -> Curve:
    """Return means and 95 % intervals of an entry by shots, in percent."""
    outcomes, groups = table.contenders[name], columns_by_shots.values()
    means = [float(np.mean([outcomes[c].values.mean() for c in columns])) for columns in groups]
    halves = [Z95 * packing.estimate_overall_error(outcomes, columns) for columns in groups]
    ends = [*zip(means, halves, strict=True)] if not any(np.isnan(halves)) else []
    return Curve(
        label=label,
        x=tuple(columns_by_shots),
        y=tuple(100 * m for m in means),
        low=tuple(100 * (m - half) for m, half in ends),
        high=tuple(100 * (m + half) for m, half in ends),
    )


def select_top_tiers(ranking: Ranking) -> Ranking:
    """Return the ranking with as many of its first tiers as a diagram has room for."""
    sizes = accumulate(len(tier) for tier in ranking.tiers)
    return replace(ranking, tiers=ranking.tiers[: sum(size <= MOST for size in sizes)])


def draw_ranks(table: BoardTable) -> Iterator[ChartRecord]:
    """Yield average ranks in the top tiers and the cliques within the critical difference.

    Nothing if the difference separates none of them.
    """
    top = select_top_tiers(table.ranking)
    try:
        if is_undivided(top):
            return
        friedman = run_friedman(top)
    except UsageError:
        return
    names = tuple(friedman.average_ranks)
    if any(len(clique) == len(names) for clique in friedman.cliques):
        return
    chart = critical.Critical(
        title="Critical difference",
        names=names,
        ranks=tuple(friedman.average_ranks.values()),
        difference=friedman.critical_difference,
        cliques=friedman.cliques,
        alpha=friedman.alpha,
    )
    ranked = sum(map(len, table.ranking.tiers))
    only = f" of the {len(top.tiers)} top tiers among themselves, {len(names)} of {ranked} rows,"
    note = (
        f"Average ranks{only if len(names) < ranked else ''} over {friedman.columns} columns; bars "
        f"join what Nemenyi's test does not separate at {friedman.alpha:g} (Friedman "
        f"{'p < 0.001' if friedman.p < 0.001 else f'p = {friedman.p:.2g}'})."
    )
    note = " ".join((note, *list_caveats(friedman, top.columns)))
    yield draw_chart(chart.title, note, partial(critical.draw, chart))
