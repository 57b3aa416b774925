"""Terminal output: progress and log lines on stderr, one table or JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer

from fsbench.core.progress import console_reporter as reporter

__all__ = ["emit_json", "log", "reporter", "table"]

UNFOLDED = 100_000
"""Characters that no table exceeds."""


def log(text: str) -> None:
    typer.echo(text, err=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table to stdout: plain text, never markup; numbers are right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for i, column in enumerate(columns):
        cells = [row[i] for row in rows]
        numeric = bool(cells) and all(cell[:1] in "0123456789-+<" for cell in cells)
        drawn.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    # A pipe has no width: print every column whole rather than folding at 80 characters.
    whole = Console(width=UNFOLDED).measure(drawn).maximum
    Console(width=None if Console().is_terminal else whole).print(drawn)


def emit_json(value: Any) -> None:
    """JSON on stdout, keys in the order of the record."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))
