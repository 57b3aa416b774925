"""Figures of a whole track, drawn when the site is built."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fsbench.core.panels import Curve, Panel, draw_panels
from fsbench.core.plotting import render_figure
from fsbench.core.tasks import ColumnId
from leaderboard.figures import draw_columns
from leaderboard.methods.record import ControlKind, MethodBoard
from leaderboard.ranking.outcomes import measure_mean
from leaderboard.summary import draw_averages
from leaderboard.tables import BoardTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 24
"""Entries of a figure of average ranks, and methods of a heat map."""
MOST_CURVES = 6
"""Lines that a reader can distinguish."""
KINDS: dict[ControlKind, str] = {
    "normal": "plain training of matched compute",
    "other_schedule": "plain training under the other schedule",
    "random_init": "the network before training",
}
PanelRecord = dict[str, Any]
"""Title, note and figure of a panel, as the page stores them."""


def make_panel(title: str, note: str, figure: "Figure", whole: bool = False) -> PanelRecord:
    """Return a figure with the text around it. whole: it takes the width of a desk."""
    svg = render_figure(figure, "svg").decode()
    return {"title": title, "note": note, "whole": whole, "svg": svg}


def draw_heat_maps(board: MethodBoard) -> Iterator[PanelRecord]:
    """Yield gains of each method over its controls, by column: a map for each kind of control.

    Gains over random initializations have one where there is no other.
    """
    rows_by_kind = {
        kind: [row for row in board.rows if any(kind in c.gains for c in row.scores.values())]
        for kind in KINDS
    }
    if rows_by_kind["normal"] or rows_by_kind["other_schedule"]:
        del rows_by_kind["random_init"]
    for kind, rows in rows_by_kind.items():
        if figure := draw_columns(board, rows[:MOST], kind, ""):
            note = f"Methods by columns, in points over {KINDS[kind]}."
            note += f" The best {MOST} of {len(rows)}." if len(rows) > MOST else ""
            yield make_panel(f"Gain over {KINDS[kind]}", note, figure, whole=True)


def draw_shots(table: BoardTable) -> Iterator[PanelRecord]:
    """Yield the mean over the data sets at each number of shots, for leaders of tiers.

    Rows of one tier would hide each other, so a table of one tier has no such figure.
    """
    tiers = len(table.ranking.tiers)
    if tiers < 2:
        return
    drawn = min(tiers, MOST_CURVES)
    places = [round(i * (tiers - 1) / (drawn - 1)) for i in range(drawn)]
    leaders = {place + 1: table.ranking.tiers[place][0].name for place in places}
    for adaptation, columns_by_shots in group_by_shots(table).items():
        panel = Panel(
            title="",
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
        yield make_panel(f"Accuracy by shots, {adaptation}", note, draw_panels([panel]))


def group_by_shots(table: BoardTable) -> dict[str, dict[int, list[str]]]:
    """Return columns by adaptation and shots, of data sets with every number of shots.

    An adaptation with one number of shots is left out.
    """
    columns: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for column in table.ranking.columns:
        identity = ColumnId.parse(column)
        if shots := identity.task.n_shot:
            columns[identity.adaptation][identity.task.dataset][shots] = column
    groups = {}
    for adaptation, datasets in columns.items():
        numbers = sorted({k for by_shots in datasets.values() for k in by_shots})
        complete = [by_shots for by_shots in datasets.values() if len(by_shots) == len(numbers)]
        if len(numbers) > 1 and complete:
            groups[adaptation] = {k: [by_shots[k] for by_shots in complete] for k in numbers}
    return groups


def build_curve(
    table: BoardTable, name: str, columns_by_shots: dict[int, list[str]], label: str
) -> Curve:
    """Return means and 95 % intervals of an entry by shots, in percent."""
    outcomes, groups = table.contenders[name], columns_by_shots.values()
    means = [measure_mean(outcomes, columns) for columns in groups]
    ranged = [] if any(math.isnan(mean.ci95) for mean in means) else means
    return Curve(
        label=label,
        x=tuple(columns_by_shots),
        y=tuple(100 * mean.gap for mean in means),
        low=tuple(100 * (mean.gap - mean.ci95) for mean in ranged),
        high=tuple(100 * (mean.gap + mean.ci95) for mean in ranged),
    )


def draw_average_ranks(table: BoardTable) -> Iterator[PanelRecord]:
    """Yield average ranks within the top tiers, as many as a figure has room for."""
    tiers, columns = table.ranking.tiers, table.ranking.columns
    sizes = accumulate(len(tier) for tier in tiers)
    top = [entry for tier in tiers[: sum(size <= MOST for size in sizes)] for entry in tier]
    if figure := draw_averages(table.ranking, top):
        ranked = sum(map(len, tiers))
        only = f" of {len(top)} of {ranked} rows, the top tiers," if len(top) < ranked else ""
        note = (
            f"Average ranks{only} over {len(columns)} columns. Bars join what Nemenyi's test does "
            "not separate; it takes columns for independent, and those of one data set are not."
        )
        yield make_panel("Critical difference", note, figure)
