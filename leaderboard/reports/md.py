"""GitHub Markdown: one table a track, bold for the best, marks and flags raised."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.reports._caption import ends, labels, sentences, superscript, texts, title
from leaderboard.reports._sheet import Cell, Sheet
from leaderboard.reports.render import escape, interval

SUFFIX = "md"


def make(sheets: Sequence[Sheet]) -> str:
    """Every text escaped; the rules stand below each table."""
    return "\n".join(map(table, sheets))


def table(sheet: Sheet) -> str:
    head = ["model", *map(escape, labels(sheet)), *ends(sheet)]
    rule = ["---", *["---:"] * (len(head) - 1)]
    body = [texts(sheet, row, number, escape) for row in sheet.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *body)]
    below = " ".join(escape(sentence) for sentence in sentences(sheet))
    return "\n".join([f"### {escape(title(sheet))}", "", *lines, "", below, ""])


def number(cell: Cell | None, sheet: Sheet) -> str:
    """e.g. **57.75 ± 0.88**<sup>†a</sup>"""
    if cell is None:
        return "-"
    shown = interval(cell.score)
    raised = superscript(cell, sheet)
    return (f"**{shown}**" if cell.best else shown) + (f"<sup>{raised}</sup>" if raised else "")
