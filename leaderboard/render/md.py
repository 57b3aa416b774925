"""GitHub Markdown: one table per track, the best of a column in bold."""

import html
import re
from collections.abc import Sequence

from fsbench.core.tables import TextTable
from leaderboard.render.frame import ScoreFrame
from leaderboard.render.notes import Best
from leaderboard.render.terminal import make_score_table


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return Markdown with the rules below each table; every text is escaped."""
    return render_tables([make_score_table(frame) for frame in frames])


def render_tables(tables: Sequence[TextTable]) -> str:
    """Return the complete form of each table."""
    return "\n".join(f"{render_table(table.complete)}\n" for table in tables)


def render_table(table: TextTable) -> str:
    """Return a heading, the sentences under the title, the table and its note."""
    rows = (table.columns, ["---"] * len(table.columns), *table.rows)
    lines = [f"| {' | '.join(map(format_text, row))} |" for row in rows]
    texts = [escape_markdown(text) for text in (" ".join(table.lead), table.note)]
    lead, note = ([text, ""] if text else [] for text in texts)
    parts = [f"### {escape_markdown(table.title)}", "", *lead, *lines, "", *note]
    return "\n".join(parts).rstrip("\n")


def format_text(text: str) -> str:
    shown = escape_markdown(text)
    return f"**{shown}**" if isinstance(text, Best) else shown


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown and HTML show it literally."""
    plain = " ".join(html.escape(text, quote=False).split())
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", plain)
