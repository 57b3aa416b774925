"""`fsbench show`: results as one table, several models side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.schema import Result

Results = Annotated[list[Path], typer.Argument(help="Results folders or files, as -o wrote them.")]


def register(app: typer.Typer) -> None:
    app.command("show")(show)


def show(results: Results, as_json: options.Json = False) -> None:
    """Verify results against their outcomes and print them; several models become columns."""
    from fsbench.results import read

    print_results([result for path in results for result in read(path)], as_json=as_json)


def print_results(results: Sequence[Result], as_json: bool = False) -> None:
    """One table on stdout, what to know of it on stderr; or a JSON list of records with `mean`."""
    from fsbench.results import table

    if as_json:
        console.emit_json([table.as_json(result) for result in results])
        return
    header, rows, notes = table.table(results)
    console.table("results", header, rows)
    for note in notes:
        console.log(note)
