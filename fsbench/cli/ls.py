"""`fsbench ls`: methods, recipes, datasets, protocols, heads, backbones, entries."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fsbench.cli import options

What = Annotated[
    str, typer.Argument(help="methods, recipes, datasets, protocols, heads, backbones, entries.")
]


def register(app: typer.Typer) -> None:
    app.command("ls")(ls)


def ls(what: What, as_json: options.Json = False) -> None:
    """List what the suite offers."""
    from fsbench.api.listing import DETAILS, rows
    from fsbench.cli.console import emit_json, table

    found = rows(what)
    if as_json:
        emit_json(found)
        return
    columns = [name for name in found[0] if name not in DETAILS] if found else [what]
    table(what, columns, [[cell(row[column]) for column in columns] for row in found])


def cell(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={shown}" for key, shown in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
