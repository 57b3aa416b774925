"""Terminal output: progress and log lines on stderr, tables or JSON on stdout."""

import csv
import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import typer

from fsbench.core.options import OptionModel, option
from fsbench.core.progress import VERBOSITY, console_reporter

if TYPE_CHECKING:
    from fsbench.core.tables import TextTable

reporter = console_reporter


@dataclass(frozen=True)
class OutputOptions(OptionModel):
    """Options of the output of every command; the last three are those of tables."""

    quiet: bool = option(False, "Output", "Print results and errors only.", "-q")
    verbose: bool = option(
        False, "Output", "Print progress every second, and where results are.", "-v"
    )
    wide: bool = option(False, "Output", "Print all columns, whatever the width.")
    columns: Sequence[str] = option(
        (), "Output", "Print these columns only: names, or data sets.", metavar="A,B"
    )
    format: Literal["table", "md", "csv"] = option("table", "Output", "Format of tables.")


AT_SPACES: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
OUTPUT: ContextVar[OutputOptions] = ContextVar("output")
"""Options of the running command."""


def start(words: str, output: OutputOptions) -> None:
    """Take the options of the output of a command, and say that it starts."""
    OUTPUT.set(output)
    VERBOSITY.set(output.verbose - output.quiet)
    log(f"fsbench {words}: starting")


def log(text: str) -> None:
    """Print a line on stderr, unless --quiet."""
    if VERBOSITY.get() >= 0:
        typer.echo(text, err=True)


def suggest(*words: object) -> str:
    """Return the command to call next, so that it runs as it is printed."""
    return f"next: {shlex.join(['fsbench', *map(str, words)])}"


def terminal_width() -> int | None:
    """Return the width of tables; None for a pipe, which has none unless COLUMNS states it."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None


def text_of(value: Any) -> str:
    """Return a value as people read it in a table."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={text_of(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(text_of, value))
    return "-" if value is None else str(value)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print one table to stdout."""
    from fsbench.core.tables import TextTable

    texts = tuple(tuple(map(text_of, row)) for row in rows)
    show_tables([TextTable(title, tuple(columns), texts)])


def show_tables(tables: "Sequence[TextTable]") -> None:
    """Print tables to stdout as --format, --columns and --wide say; each note once, at the end."""
    from fsbench.core.tables import choose_columns

    output = OUTPUT.get(OutputOptions())
    if output.columns:
        tables = choose_columns(tables, output.columns)
    elif output.wide or output.format != "table":
        tables = [table.complete for table in tables]
    else:
        tables = [table for table in tables if not table.is_extra]
    notes: dict[str, None] = {}
    for table in tables:
        if output.format == "csv":
            typer.echo(write_csv(table), nl=False)
        elif output.format == "md":
            from leaderboard.render.md import render_table

            typer.echo(render_table(table) + "\n")
        else:
            notes |= dict.fromkeys(show_table(table, None if output.wide else terminal_width()))
    for note in notes:
        log(note)


def show_table(table: "TextTable", width: int | None) -> list[str]:
    """Print what fits of a table, its title and its finding above it.

    Return its notes, and what was left out.
    """
    from fsbench.core.tables import draw_table, fit_table

    part, omitted = fit_table(table, width)
    print_lines((table.title, *table.lead), width)
    typer.echo("\n".join(["", draw_table(part, width), ""]))
    left_out = (
        f"left out at {width} columns: {', '.join(omitted)}; "
        f"--columns A,B chooses, --wide prints all, --format csv writes a file"
    )
    return [*table.note.splitlines(), *([left_out] if omitted else [])]


def print_lines(lines: Iterable[str], width: int | None = None) -> None:
    """Print lines of prose, folded at spaces; what follows a fold is indented like its line.

    width: that of the terminal by default.
    """
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        columns = width or terminal_width() or sys.maxsize
        typer.echo(fill(line, columns, subsequent_indent=indent, **AT_SPACES))


def write_csv(table: "TextTable") -> str:
    """Return a table as CSV, with texts that no spreadsheet runs as a formula."""
    from leaderboard.render.csv import guard_formula

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([guard_formula(text) for text in row] for row in (table.columns, *table.rows))
    return out.getvalue()


def emit(
    as_json: bool,
    value: Any,
    title: str,
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[Any]] = (),
) -> None:
    """Print the value of --json, or else one table: by default of the value, a list of records."""
    if as_json:
        emit_json(value)
    else:
        table(title, columns or tuple(value[0]), rows if columns else [r.values() for r in value])


def emit_json(value: Any) -> None:
    """JSON on stdout, keys in the order of the record."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))
