"""`fsbench ls` and `fsbench protocols`: list what fsbench offers; compare two protocols."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fsbench.cli import console, options

KINDS = "methods, recipes, datasets, protocols, heads, backbones, analyses or entries"
FORM = "HEAD@PROTOCOL, probe or knn; append :64px for another input size"
What = Annotated[str, typer.Argument(help=f"What to list: {KINDS}.")]
First = Annotated[str, typer.Argument(help=f"Protocol: {FORM}.")]
Second = Annotated[str, typer.Argument(help="Protocol to compare with.")]


def register(app: typer.Typer) -> None:
    app.command("ls")(ls)
    group = typer.Typer(no_args_is_help=True, help="Compare evaluation protocols.")
    group.callback()(lambda: None)
    group.command("diff")(diff)
    app.add_typer(group, name="protocols")


def ls(what: What, as_json: options.Json = False) -> None:
    """List methods, recipes, data sets, protocols, heads, backbones, analyses or entries."""
    from fsbench.api.listing import DETAILS, rows

    listing = rows(what)
    if as_json:
        console.emit_json(listing)
        return
    columns = [name for name in listing[0] if name not in DETAILS] if listing else [what]
    console.table(what, columns, [[text_of(row[column]) for column in columns] for row in listing])


def diff(a: First, b: Second, as_json: options.Json = False) -> None:
    """Print the fields in which two protocols differ; `fsbench ls protocols` lists them all.

    Results of different protocols never share a column of a table.
    """
    from fsbench.api.listing import diff_protocols, protocol_fields, protocol_spec

    differences = diff_protocols(a, b)
    if as_json:
        console.emit_json([{"field": n, "a": x, "b": y} for n, (x, y) in differences.items()])
        return
    if differences:
        rows = [[n, text_of(x) or "-", text_of(y) or "-"] for n, (x, y) in differences.items()]
        console.table("protocols", ["field", a, b], rows)
    equal = protocol_fields(protocol_spec(a)).keys() - differences.keys()
    console.log(f"{len(differences)} fields differ, {len(equal)} are equal")


def text_of(value: Any) -> str:
    """Return a value as text for a table."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={part}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
