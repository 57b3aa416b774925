"""GitHub Markdown: one table per track, bold for the best, superscript marks and flags."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.reports.render import escape_markdown, format_score
from leaderboard.reports.table import (
    ReportScore,
    ReportTable,
    caption_sentences,
    caption_title,
    extra_columns,
    format_superscript,
    row_texts,
    short_labels,
)

SUFFIX = "md"


def make(tables: Sequence[ReportTable]) -> str:
    """Return Markdown with the rules below each table; every text is escaped."""
    return "\n".join(map(markdown_report_table, tables))


def markdown_report_table(table: ReportTable) -> str:
    head = ["model", *map(escape_markdown, short_labels(table)), *extra_columns(table)]
    rule = ["---", *["---:"] * (len(head) - 1)]
    body = [row_texts(table, row, markdown_number, escape_markdown) for row in table.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *body)]
    below = " ".join(escape_markdown(sentence) for sentence in caption_sentences(table))
    return "\n".join([f"### {escape_markdown(caption_title(table))}", "", *lines, "", below, ""])


def markdown_number(cell: ReportScore | None, table: ReportTable) -> str:
    """Return e.g. **57.75 ± 0.88**<sup>†a</sup>"""
    if cell is None:
        return "-"
    shown = format_score(cell.score)
    raised = format_superscript(cell, table)
    return (f"**{shown}**" if cell.best else shown) + (f"<sup>{raised}</sup>" if raised else "")
