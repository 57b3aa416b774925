"""`fsbench leaderboard boards` and `init`: the official boards, and a board folder to submit to."""

from __future__ import annotations

from typing import Annotated

import typer

from fsbench.cli import console, options
from fsbench.cli.leaderboard import group

Official = Annotated[
    str | None, typer.Option("--official", help="An official board: cdfsl or transfer.")
]
Version = Annotated[
    int | None, typer.Option("--version", help="Version of it; the newest if left out.")
]


def register(app: typer.Typer) -> None:
    commands = group(app)
    commands.command("boards")(boards)
    commands.command("init")(init)


def boards(as_json: options.Json = False) -> None:
    """List the official boards: versions, dates, tracks and what their columns hold."""
    from leaderboard.board import overview

    if as_json:
        console.emit_json(overview.as_json())
        return
    console.table("official boards", overview.HEADER, overview.rows())
    console.log(overview.NOTE)


def init(board: options.Board, official: Official = None, version: Version = None) -> None:
    """Write board.json: of an official board, frozen, or of a free one that compares whatever its
    entries hold."""
    from leaderboard.board.official import init as write

    file = write(board, official, version)
    kind = "free" if file.version is None else f"{len(file.columns or ())} columns, {file.date}"
    typer.echo(f"{board}: {file.title} ({kind})")
