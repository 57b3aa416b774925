"""Charts of a whole track, drawn for a desk and for a phone when the site is built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fsbench.core.panels import Panel, draw_panels
from fsbench.core.plotting import Drawing
from leaderboard.charts import critical, heat_map, scatter
from leaderboard.methods.build import of_view
from leaderboard.methods.record import Cell, Gain, Kind, MethodBoard, Row
from leaderboard.ranking.summary import BoardStatistics, list_caveats
from leaderboard.reports.render import shorten
from leaderboard.site.curves import curves
from leaderboard.site.source import Track

Section = dict[str, Any]
"""Title, note and drawings of a chart, as the page stores them."""
PHONE, HALF, WHOLE = 358, 590, 1180
"""Pixels of a drawing on a phone, and of one that takes half or all of the width of a desk."""
MOST = 24
"""Entries of a critical-difference diagram, best first, and methods of a heat map."""
KINDS: dict[Kind, str] = {
    "normal": "plain training of matched compute",
    "other_schedule": "plain training under the other schedule",
    "random_init": "the network before training",
}
LAST: Kind = "random_init"
"""The control of a heat map where there is no other."""


def panels(track: Track, statistics: BoardStatistics) -> list[Section]:
    """Title, note and drawings (wide, narrow) of every chart that the track has the data for."""
    if not track.names:
        return []
    methods = of_view(track.view)
    found = (heat(methods), front(methods), by_shots(track), ranks(statistics))
    return [panel for each in found for panel in each]


def heat(board: MethodBoard) -> Iterator[Section]:
    """Gain of each method over its controls, by column: a map a kind of control."""
    held = {kind: [row for row in board.rows if gains(row, kind)] for kind in KINDS}
    for kind, words in KINDS.items():
        if held[kind] and (
            kind != LAST or not any(held[other] for other in KINDS if other != LAST)
        ):
            yield heat_section(board, kind, words, held[kind])


def gains(row: Row, kind: Kind) -> bool:
    return any(kind in cell.gains for cell in row.cells.values())


def heat_section(board: MethodBoard, kind: Kind, words: str, held: Sequence[Row]) -> Section:
    rows = held[:MOST]
    found = [[at(row.cells, column, kind) for column in board.columns] for row in rows]
    chart = heat_map.HeatMap(
        title=f"Gain over {words}",
        rows=tuple(row.name for row in rows),
        columns=tuple(shorten(board.columns)[0]),
        values=grid(found, lambda gain: gain.gap),
        low=grid(found, lambda gain: end(gain, -1)),
        high=grid(found, lambda gain: end(gain, 1)),
    )
    note = f"Methods by columns, in points over {words}; a dot where the interval excludes 0."
    return section(chart.title, note + best_of(rows, held), partial(heat_map.draw, chart), WHOLE)


def best_of(shown: Collection[object], held: Collection[object]) -> str:
    """A sentence where not all are drawn."""
    return f" The best {len(shown)} of {len(held)}." if len(shown) < len(held) else ""


def at(cells: Mapping[str, Cell], column: str, kind: Kind) -> Gain | None:
    return cells[column].gains.get(kind) if column in cells else None


def grid(
    gains: Sequence[Sequence[Gain | None]], value: Callable[[Gain], float | None]
) -> tuple[heat_map.Values, ...]:
    """A number of each gain, None where there is none."""
    return tuple(tuple(None if gain is None else value(gain) for gain in row) for row in gains)


def end(gain: Gain, side: int) -> float | None:
    return None if gain.ci95 is None else gain.gap + side * gain.ci95


def front(board: MethodBoard) -> Iterator[Section]:
    """Accuracy against what pretraining cost."""
    points = tuple(
        scatter.Point(row.name, row.costs.flops, row.overall.mean, *ends(row.overall))
        for row in board.rows
        if row.overall is not None and row.costs.flops > 0
    )
    if len(points) > 1:
        chart = scatter.Scatter(
            title="Accuracy against cost",
            x="FLOPs of pretraining",
            y="accuracy (%)",
            points=points,
            percent_x=False,
            log_x=True,
            front=True,
        )
        note = "Overall accuracy in percent; the line is the Pareto front (best for its cost)."
        yield section(chart.title, note, partial(scatter.draw, chart))


def ends(cell: Cell) -> tuple[float | None, float | None]:
    return (None, None) if cell.ci95 is None else (cell.mean - cell.ci95, cell.mean + cell.ci95)


def by_shots(track: Track) -> Iterator[Section]:
    """Mean over the data sets at each number of shots, of the best entries."""
    for kind, lines in curves(track).items():
        chart = Panel(
            title=f"Accuracy by shots, {kind}",
            x="shots (images per class)",
            y="accuracy (%)",
            curves=lines,
            log_x=True,
        )
        note = "Mean over the data sets, best entries first; bands are 95 % intervals."
        yield section(chart.title, note, partial(draw_panels, [chart], chart.title))


def ranks(statistics: BoardStatistics) -> Iterator[Section]:
    """Average ranks over the columns and what Nemenyi's test does not separate."""
    tested = statistics.friedman
    title = "Critical difference"
    if tested is None:
        return
    names = tuple(tested.average_ranks)[:MOST]
    chart = critical.Critical(
        title=title,
        names=names,
        ranks=tuple(tested.average_ranks[name] for name in names),
        difference=tested.critical_difference,
        cliques=tested.cliques,
        alpha=tested.alpha,
    )
    note = " ".join(
        (
            f"Average ranks over {tested.columns} columns; bars join what Nemenyi's test does not",
            f"separate at {tested.alpha:g} (Friedman p = {tested.p:.2g})."
            + best_of(names, tested.average_ranks),
            *list_caveats(tested, statistics.columns),
        )
    )
    yield section(title, note, partial(critical.draw, chart))


def section(title: str, note: str, draw: Callable[[float], Drawing], width: int = HALF) -> Section:
    """Return a chart drawn for a desk and for a phone."""
    slug = "".join(c if c.isalnum() else "-" for c in title.lower())
    drawings = [draw(pixels).to_svg(f"{slug}-{pixels}") for pixels in (width, PHONE)]
    return {"title": title, "note": note, "whole": width == WHOLE, "drawings": drawings}
