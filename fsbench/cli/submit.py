"""`fsbench submit`: check results and put them on a board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import console, options

Results = Annotated[Path, typer.Argument(help="Results folder, or a .zip or .tar.gz of one.")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the entry.")]
Authors = Annotated[str | None, typer.Option("--authors", help="Who made it.")]
Link = Annotated[str | None, typer.Option("--link", help="Code or paper.")]
Licence = Annotated[
    str | None, typer.Option("--licence", "--license", help="Licence of the weights.")
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
    str | None, typer.Option("--statement", help="How the numbers came about, in a sentence.")
]
Declaration = Annotated[
    Path | None,
    typer.Option("--declaration", help="JSON, TOML or YAML file with these; options beat it."),
]
Models = Annotated[
    list[str] | None,
    typer.Option("-m", "--model", help="Only this model of the folder; repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check only, write nothing.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace an entry of the same name.")]


def register(app: typer.Typer) -> None:
    app.command("submit")(submit)


def submit(
    results: Results,
    board: options.Board,
    name: Name = None,
    authors: Authors = None,
    link: Link = None,
    licence: Licence = None,
    pretraining_data: Pretraining = None,
    targets_seen: Seen = None,
    statement: Statement = None,
    declaration: Declaration = None,
    model: Models = None,
    dry_run: DryRun = False,
    replace: Replace = False,
) -> None:
    """Check results and add one entry per model; on any problem list all and write nothing."""
    from leaderboard.submission.intake import submit as submit_results

    given = {
        "name": name,
        "authors": authors,
        "link": link,
        "license": licence,
        "pretraining_data": options.split(pretraining_data) or None,
        "targets_seen": options.split(targets_seen) or None,
        "statement": statement,
    }
    added = submit_results(
        results,
        board,
        given,
        file=declaration,
        models=options.split(model),
        dry_run=dry_run,
        replace=replace,
    )
    for each in added:
        if each.left_out:
            console.log(
                f"{each.name}: left out, no column of the board: {', '.join(each.left_out)}"
            )
    status = "ok, not written" if dry_run else "added"
    rows = [
        (each.name, each.model, each.facts.weights_hash[:12], str(len(each.cells)), status)
        for each in added
    ]
    console.table(str(board), ("entry", "model", "weights", "results", "status"), rows)
