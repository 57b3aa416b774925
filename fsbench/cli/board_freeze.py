"""`fsbench leaderboard freeze`: a board of one's own as a version to be cited."""

from __future__ import annotations

from typing import Annotated

import typer

from fsbench.cli import console, options
from fsbench.cli.leaderboard import group

Version = Annotated[int, typer.Option("--version", min=1, help="Version of the board.")]
About = Annotated[str | None, typer.Option("--about", help="What the board is for.")]


def register(app: typer.Typer) -> None:
    group(app).command("freeze")(freeze)


def freeze(
    board: options.Board, version: Version = 1, about: About = None, cache: options.Cache = None
) -> None:
    """Make a board of one's own a version: columns, rule and date in board.json, with digests, so
    that whoever reads a copy that was changed in place is told."""
    from fsbench.core.folders import cache_folder
    from leaderboard.board.freezing import freeze as write

    file = write(board, version, about, cache_folder(cache), console.reporter())
    typer.echo(f"{board}: {file.title} ({len(file.columns or ())} columns, {file.date})")
