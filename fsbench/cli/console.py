"""Terminal output: progress and log lines on stderr, tables or JSON on stdout.

Options of all commands live here: -q and -v, and for tables --wide, --columns and --format.
"""

import csv
import inspect
import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer
from typer import Option

from fsbench.core.options import expand_path
from fsbench.core.progress import VERBOSITY, console_reporter

if TYPE_CHECKING:
    from fsbench.core.tables import TextTable

reporter = console_reporter


def output_options(
    quiet: Annotated[bool, Option("-q", "--quiet", help="Print results and errors only.")] = False,
    verbose: Annotated[
        bool, Option("-v", "--verbose", help="Print progress every second, and where results are.")
    ] = False,
    wide: Annotated[bool, Option("--wide", help="Print all columns, whatever the width.")] = False,
    columns: Annotated[
        str, Option(metavar="A,B", help="Print these columns only: names, or data sets.")
    ] = "",
    format: Annotated[  # noqa: A002
        Literal["table", "md", "csv"], Option(help="Format of tables.")
    ] = "table",
) -> None:
    """Declare the options of the output of every command; those of tables come last."""


AT_SPACES: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
OUTPUT: ContextVar[dict[str, Any]] = ContextVar("settings")
"""Output options of the running command; empty outside of one."""


def with_output_options(path: str, command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its output, which says at once that it has started.

    path: the words that call it, e.g. 'leaderboard show'.
    """
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
    ]
    added = dict(inspect.signature(output_options).parameters)
    if path == "report" or {"as_json", "shape"}.isdisjoint(signature.parameters):
        added = {name: added[name] for name in ("quiet", "verbose")}
    elif "shape" in signature.parameters:
        del added["format"]
    for parameter in added.values():
        parameter.annotation.__metadata__[0].rich_help_panel = "Output"
        parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:
        settings = {name: values.pop(name) for name in added}
        OUTPUT.set(settings)
        VERBOSITY.set(settings["verbose"] - settings["quiet"])
        log(f"fsbench {path}: starting")
        command(**{name: expand_paths(value) for name, value in values.items()})

    paragraphs = (command.__doc__ or "").split("\n\n")  # help keeps single line breaks
    run.__doc__ = "\n\n".join(" ".join(part.split()) for part in paragraphs)
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def expand_paths(value: Any) -> Any:
    """Return a value of an option with `~` and environment variables in its paths replaced."""
    if isinstance(value, list):
        return [expand_paths(part) for part in value]
    return expand_path(value) if isinstance(value, Path) else value


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


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table to stdout; columns with one text in all rows move into the title."""
    from fsbench.core.tables import TextTable

    show_tables([TextTable(title, tuple(columns), tuple(map(tuple, rows))).share()])


def show_tables(tables: "Sequence[TextTable]") -> None:
    """Print tables to stdout as --format, --columns and --wide say; each note once, at the end."""
    from fsbench.core.tables import choose_columns

    settings = OUTPUT.get({})
    shape, names, wide = settings.get("format"), settings.get("columns"), settings.get("wide")
    if names:
        tables = choose_columns(tables, [name.strip() for name in names.split(",")])
    elif wide or shape in {"md", "csv"}:
        tables = [table.complete for table in tables]
    else:
        tables = [table for table in tables if not table.is_extra]
    notes: dict[str, None] = {}
    for table in tables:
        if shape == "csv":
            typer.echo(write_csv(table), nl=False)
        elif shape == "md":
            from leaderboard.render.md import render_table

            typer.echo(render_table(table) + "\n")
        else:
            notes |= dict.fromkeys(show_table(table, None if wide else terminal_width()))
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
    as_json: bool, value: Any, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print the value of --json, or else one table."""
    if as_json:
        emit_json(value)
    else:
        table(title, columns, list(rows))


def emit_json(value: Any) -> None:
    """JSON on stdout, keys in the order of the record."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))
