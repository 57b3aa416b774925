"""`fsbench protocols diff`: in which fields two protocols differ."""

from __future__ import annotations

from typing import Annotated

import typer

from fsbench.cli import options

FORM = "ADAPTATION@PROTOCOL, probe or knn; `:64px` behind it for a size."
First = Annotated[str, typer.Argument(help=f"A protocol: {FORM}")]
Second = Annotated[str, typer.Argument(help="Another one.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Evaluation protocols: compare two.")
    group.callback()(lambda: None)
    group.command("diff")(diff)
    app.add_typer(group, name="protocols")


def diff(a: First, b: Second, as_json: options.Json = False) -> None:
    """Print the fields in which two protocols differ; numbers of different ones never share a
    column. All of them: fsbench ls protocols."""
    from fsbench.api.variants import difference, fields, variant
    from fsbench.cli.console import emit_json, log, table
    from fsbench.cli.ls import cell

    found = difference(a, b)
    if as_json:
        emit_json([{"field": name, "a": x, "b": y} for name, (x, y) in found.items()])
        return
    if found:
        rows = [[name, cell(x) or "-", cell(y) or "-"] for name, (x, y) in found.items()]
        table("protocols", ["field", a, b], rows)
    equal = fields(variant(a)).keys() - found.keys()
    log(f"{len(found)} fields differ, {len(equal)} are equal")
