"""`fsbench submit`: check results and add them to a board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import console, options

Results = Annotated[Path, typer.Argument(help="Results folder, or a .zip or .tar.gz of one.")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the entry.")]
Authors = Annotated[str | None, typer.Option("--authors", help="Authors of the entry.")]
Link = Annotated[str | None, typer.Option("--link", help="Link to code or paper.")]
License = Annotated[
    str | None, typer.Option("--license", "--licence", help="Licence of the weights.")
]
Pretraining = Annotated[
    list[str] | None,
    typer.Option("--pretraining-data", help="Data sets of the pretraining, or none; repeatable."),
]
Seen = Annotated[
    list[str] | None,
    typer.Option("--targets-seen", help="Targets seen in pretraining, or none; repeatable."),
]
Statement = Annotated[
    str | None, typer.Option("--statement", help="How the results were obtained, in one sentence.")
]
Declaration = Annotated[
    Path | None,
    typer.Option(
        "--declaration", help="JSON, TOML or YAML file with these fields; options override it."
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("-m", "--model", help="Submit only this model of the folder; repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check only; write nothing.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace an entry of the same name.")]


def register(app: typer.Typer) -> None:
    app.command("submit")(submit)


def submit(
    results: Results,
    board: options.Board,
    name: Name = None,
    authors: Authors = None,
    link: Link = None,
    license: License = None,  # noqa: A002
    pretraining_data: Pretraining = None,
    targets_seen: Seen = None,
    statement: Statement = None,
    declaration: Declaration = None,
    model: Models = None,
    dry_run: DryRun = False,
    replace: Replace = False,
) -> None:
    """Check results and add one entry per model; list all problems and write nothing on any."""
    from fsbench.api.submit import submit as submit_results

    entries = submit_results(
        results,
        board,
        name=name,
        authors=authors,
        link=link,
        license=license,
        pretraining_data=options.split(pretraining_data) or None,
        targets_seen=options.split(targets_seen) or None,
        statement=statement,
        declaration=declaration,
        models=options.split(model),
        dry_run=dry_run,
        replace=replace,
    )
    for entry in entries:
        if entry.left_out:
            columns = ", ".join(entry.left_out)
            console.log(f"{entry.name}: left out, no column of the board: {columns}")
    status = "ok, not written" if dry_run else "added"
    rows = [
        (entry.name, entry.model, entry.weights_hash[:12], str(entry.n_results), status)
        for entry in entries
    ]
    console.table(str(board), ("entry", "model", "weights", "results", "status"), rows)
