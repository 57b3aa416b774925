"""Figures of a whole track, drawn when the site is built."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fsbench.core import plotting
from leaderboard.figures import draw_columns
from leaderboard.methods.record import MethodBoard
from leaderboard.methods.tables import HEADINGS, list_compared_kinds
from leaderboard.summary import draw_averages
from leaderboard.tables import BoardTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 24
"""Entries of a figure of average ranks, and methods of a heat map."""
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
