"""`fsbench results`: work on result folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import console, options

Parts = Annotated[list[Path], typer.Argument(help="Results folders of the parts.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Work on result folders: merge.")
    group.command("merge")(merge)
    app.add_typer(group, name="results")


def merge(parts: Parts, output: options.Output, as_json: options.Json = False) -> None:
    """Join the parts of sharded evaluations into what one process would have written."""
    from fsbench.cli.show import print_results
    from fsbench.results import merge as merge_results

    print_results(merge_results(parts, output), as_json=as_json)
    console.log(f"merged {len(parts)} parts into {output}")
