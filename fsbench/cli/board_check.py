"""`fsbench leaderboard check`: hold a whole board against every rule, for pull requests."""

from __future__ import annotations

import typer

from fsbench.cli import options
from fsbench.cli.leaderboard import group, require


def register(app: typer.Typer) -> None:
    group(app).command("check")(check)


def check(board: options.Board) -> None:
    """Read all of a board and list what is wrong: entries, hashes, badges, stray files.

    Exits 5 with the list, so a repository of entries can run it on every pull request.
    """
    from fsbench.core.errors import ValidationFailed
    from leaderboard.submission.inspection import inspect_board

    require(board)
    found = inspect_board(board)
    read = (
        f"{found.entries} entries, {found.results} results, {found.episodes} episodes, "
        f"{found.badges} badges"
    )
    if found.problems:
        listed = "\n  ".join(map(str, found.problems))
        raise ValidationFailed(f"{len(found.problems)} problems in {read}\n  {listed}")
    typer.echo(f"ok: {read}")
