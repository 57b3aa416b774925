"""Figures of a whole track, drawn when the site is built."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fsbench.core import plotting
from fsbench.core.plotting import SERIES, clean_text
from fsbench.core.tasks import ColumnId
from leaderboard.figures import draw_columns
from leaderboard.methods.record import MethodBoard
from leaderboard.methods.tables import HEADINGS, list_compared_kinds
from leaderboard.ranking.outcomes import measure_mean
from leaderboard.summary import draw_averages
from leaderboard.tables import BoardTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 24
"""Entries of a figure of average ranks, and methods of a heat map."""
MOST_CURVES = 6
"""Lines that a reader can distinguish."""
PanelRecord = dict[str, Any]
"""Title, note and figure of a panel, as the page stores them."""


def make_panel(title: str, note: str, figure: "Figure", whole: bool = False) -> PanelRecord:
    """Return a figure with the text around it. whole: it takes the width of a desk."""
    svg = plotting.render_figure(figure, "svg").decode()
    return {"title": title, "note": note, "whole": whole, "svg": svg}


def draw_heat_maps(board: MethodBoard) -> Iterator[PanelRecord]:
    """Yield gains of the best methods by column: a map for each kind of control."""
    for kind in list_compared_kinds(board):
        rows = [row for row in board.rows if kind in row.controls]
        if figure := draw_columns(board, rows[:MOST], kind, ""):
            note = f"Points {HEADINGS[kind]} by column."
            note += f" The best {MOST} of {len(rows)}." if len(rows) > MOST else ""
            yield make_panel(f"Gains {HEADINGS[kind]}", note, figure, whole=True)


def list_shot_panels(table: BoardTable) -> Iterator[PanelRecord]:
    """Yield the mean over the data sets at each number of shots, for leaders of tiers.

    Rows of one tier would hide each other, so a table of one tier has no such figure.
    """
    tiers = table.ranking.tiers
    if len(tiers) < 2:
        return
    leaders = {f"tier {i}": tier[0].name for i, tier in enumerate(tiers[:MOST_CURVES], 1)}
    note = (
        f"Mean over the data sets; the leaders of the best {len(leaders)} of {len(tiers)} tiers, "
        "with 95 % intervals over episodes."
    )
    for adaptation, columns_by_shots in group_by_shots(table.ranking.columns).items():
        figure = draw_shots(table, leaders, columns_by_shots)
        yield make_panel(f"Accuracy by shots, {adaptation}", note, figure)


def group_by_shots(columns: Sequence[str]) -> dict[str, dict[int, list[str]]]:
    """Return columns by adaptation and shots, where all numbers of shots have as many columns."""
    groups: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for column in sorted(columns, key=lambda column: ColumnId.parse(column).task.n_shot or 0):
        identity = ColumnId.parse(column)
        if shots := identity.task.n_shot:
            groups[identity.adaptation][shots].append(column)
    return {
        adaptation: by_shots
        for adaptation, by_shots in groups.items()
        if len(by_shots) > 1 and len({len(part) for part in by_shots.values()}) == 1
    }


@plotting.style()
def draw_shots(
    table: BoardTable, leaders: Mapping[str, str], columns_by_shots: Mapping[int, Sequence[str]]
) -> "Figure":
    """Return accuracies in percent by shots, with 95 % intervals. leaders: tier -> row."""
    figure = plotting.create_figure(380, 230 + plotting.LINE * len(leaders), "")
    axes = figure.add_subplot(xlabel="shots (images per class)", ylabel="accuracy (%)")
    axes.grid(axis="y")
    for (tier, name), colour in zip(leaders.items(), SERIES, strict=False):
        outcomes = table.contenders[name]
        means = [measure_mean(outcomes, columns) for columns in columns_by_shots.values()]
        values, halves = ([100 * m.gap for m in means], [100 * m.ci95 for m in means])
        label = clean_text(f"{tier}: {name}", 44)
        axes.errorbar([*columns_by_shots], values, halves, color=colour, marker="o", label=label)
    plotting.set_scale(axes, "x", "log")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def draw_average_ranks(table: BoardTable) -> Iterator[PanelRecord]:
    """Yield the average ranks of the best rows."""
    ranked = [entry for tier in table.ranking.tiers for entry in tier]
    if figure := draw_averages(table.ranking, ranked[:MOST]):
        only = f" of the best {MOST} of {len(ranked)} rows" if len(ranked) > MOST else ""
        note = (
            f"Average ranks{only} over {len(table.ranking.columns)} columns. Bars join what "
            "Nemenyi's test does not separate; it takes columns for independent, and those of one "
            "data set are not."
        )
        yield make_panel("Critical difference", note, figure)
