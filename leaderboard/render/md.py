"""GitHub Markdown: one table per track, bold for the best, superscript marks and flags."""

import html
import re
from collections.abc import Sequence

from fsbench.core.tables import TextTable
from fsbench.results.table import shorten_columns
from leaderboard.render.frame import ScoreFrame
from leaderboard.render.notes import SEED_MARK, format_mean_interval


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return Markdown with the rules below each table; every text is escaped."""
    return "\n".join(map(make_markdown_table, frames))


def make_markdown_table(frame: ScoreFrame) -> str:
    """Return one table under its title, with the caption below."""
    columns = frame.columns
    labels = shorten_columns(frame.table.ranking.columns)[0]
    labels += columns[len(labels) :]
    marks = (frame.mark(column=column) for column in columns)
    heads = [escape_markdown(x) + raise_text(m) for x, m in zip(labels, marks, strict=True)]
    rows = [
        [
            escape_markdown(SEED_MARK * frame.is_seed(name) + name) + raise_text(frame.mark(name)),
            *(format_markdown_number(frame, name, column) for column in columns),
        ]
        for name in frame.lines
    ]
    head = [["model", *heads], ["---", *["---:"] * len(columns)]]
    lines = [f"| {' | '.join(cells)} |" for cells in (*head, *rows)]
    caption = " ".join(escape_markdown(sentence) for sentence in frame.write_caption())
    return "\n".join([f"### {escape_markdown(frame.title)}", "", *lines, "", caption, ""])


def format_markdown_number(frame: ScoreFrame, name: str, column: str) -> str:
    """Return e.g. **57.75 ± 0.88**<sup>†a</sup>"""
    score = frame.scores[name].get(column)
    if score is None:
        return "-"
    shown = format_mean_interval(score.score)
    shown = f"**{shown}**" if frame.is_bold(score) else shown
    return shown + raise_text(score.mark + frame.mark(name, column))


def raise_text(marks: str) -> str:
    return f"<sup>{marks}</sup>" if marks else ""


def render_table(table: TextTable) -> str:
    """Return a heading, the sentences under the title, the table and its note."""
    rows = (table.columns, ["---"] * len(table.columns), *table.rows)
    lines = [f"| {' | '.join(map(escape_markdown, row))} |" for row in rows]
    texts = [escape_markdown(text) for text in (" ".join(table.lead), table.note)]
    lead, note = ([text, ""] if text else [] for text in texts)
    parts = [f"### {escape_markdown(table.title)}", "", *lead, *lines, "", *note]
    return "\n".join(parts).rstrip("\n")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown and HTML show it literally."""
    plain = " ".join(html.escape(text, quote=False).split())
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", plain)
