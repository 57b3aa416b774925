"""GitHub Markdown: one table a track, bold for the best, marks and flags raised."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.reports._caption import (
    caption_sentences,
    caption_title,
    extra_columns,
    format_superscript,
    row_texts,
    short_labels,
)
from leaderboard.reports.render import escape_markdown, format_score
from leaderboard.reports.table import ReportScore, ReportTable

SUFFIX = "md"


def make(sheets: Sequence[ReportTable]) -> str:
    """Every text escaped; the rules stand below each table."""
    return "\n".join(map(markdown_report_table, sheets))


def markdown_report_table(sheet: ReportTable) -> str:
    head = ["model", *map(escape_markdown, short_labels(sheet)), *extra_columns(sheet)]
    rule = ["---", *["---:"] * (len(head) - 1)]
    body = [row_texts(sheet, row, markdown_number, escape_markdown) for row in sheet.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *body)]
    below = " ".join(escape_markdown(sentence) for sentence in caption_sentences(sheet))
    return "\n".join([f"### {escape_markdown(caption_title(sheet))}", "", *lines, "", below, ""])


def markdown_number(cell: ReportScore | None, sheet: ReportTable) -> str:
    """e.g. **57.75 ± 0.88**<sup>†a</sup>"""
    if cell is None:
        return "-"
    shown = format_score(cell.score)
    raised = format_superscript(cell, sheet)
    return (f"**{shown}**" if cell.best else shown) + (f"<sup>{raised}</sup>" if raised else "")
