"""GitHub Markdown: one table per track, bold for the best, superscript marks and flags."""

from collections.abc import Sequence

from fsbench.results.table import shorten_columns
from leaderboard.reports.render import escape_markdown, format_mean_interval
from leaderboard.reports.table import (
    ReportScore,
    ReportTable,
    format_row,
    format_superscript,
    list_extra_columns,
    make_caption_title,
    write_caption,
)

SUFFIX = "md"


def make(tables: Sequence[ReportTable]) -> str:
    """Return Markdown with the rules below each table; every text is escaped."""
    return "\n".join(map(make_markdown_table, tables))


def make_markdown_table(table: ReportTable) -> str:
    head = [
        "model",
        *map(escape_markdown, shorten_columns(table.columns)[0]),
        *list_extra_columns(table),
    ]
    rule = ["---", *["---:"] * (len(head) - 1)]
    body = [format_row(table, row, format_markdown_number, escape_markdown) for row in table.rows]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *body)]
    below = " ".join(escape_markdown(sentence) for sentence in write_caption(table))
    return "\n".join(
        [f"### {escape_markdown(make_caption_title(table))}", "", *lines, "", below, ""]
    )


def format_markdown_number(cell: ReportScore | None, table: ReportTable) -> str:
    """Return e.g. **57.75 ± 0.88**<sup>†a</sup>"""
    if cell is None:
        return "-"
    shown = format_mean_interval(cell.score)
    raised = format_superscript(cell, table)
    return (f"**{shown}**" if table.bolds(cell) else shown) + (
        f"<sup>{raised}</sup>" if raised else ""
    )
