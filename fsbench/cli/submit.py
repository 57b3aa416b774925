"""`fsbench submit`: check results and put them on a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from leaderboard.board import Board
    from leaderboard.submission import Submission

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
    from leaderboard.archive import opened
    from leaderboard.board import Board
    from leaderboard.declaration import declare, find
    from leaderboard.submission import collect

    given = {
        "name": name,
        "authors": authors,
        "link": link,
        "license": licence,
        "pretraining_data": options.split(pretraining_data) or None,
        "targets_seen": options.split(targets_seen) or None,
        "statement": statement,
    }
    with opened(results) as folder:
        declared = declare(declaration or find(folder), given)
        submissions = collect(folder, declared, options.split(model))
        settle(Board.open(board), submissions, dry_run, replace)


def settle(board: Board, submissions: list[Submission], dry_run: bool, replace: bool) -> None:
    """Raise with all problems of all entries, else write them and say so."""
    from fsbench.errors import ValidationFailed
    from leaderboard.checks import check

    problems = [p for submission in submissions for p in check(submission, board, replace)]
    if problems:
        listed = "\n  ".join(str(problem) for problem in dict.fromkeys(problems))
        raise ValidationFailed(f"{len(problems)} problems, nothing was written\n  {listed}")
    if not dry_run:
        board.add(submissions, replace)
    rows = [
        (
            s.name,
            s.model,
            s.facts.weights_hash[:12],
            str(len(s.cells)),
            "ok" if dry_run else "added",
        )
        for s in submissions
    ]
    console.table(str(board.folder), ("entry", "model", "weights", "results", "status"), rows)
