"""`fsbench leaderboard reproduce`: the commands that make an entry again."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated

import typer

from fsbench.cli import console, options
from fsbench.cli.leaderboard import group, require


class Format(StrEnum):
    SH = "sh"
    JSON = "json"


Entry = Annotated[str, typer.Argument(help="Name of the entry.")]
Shape = Annotated[Format, typer.Option("--format", help="Shape of the output.")]


def register(app: typer.Typer) -> None:
    group(app).command("reproduce")(reproduce)


def reproduce(entry: Entry, board: options.Board, shape: Shape = Format.SH) -> None:
    """Print the commands and the environment that make an entry's results again.

    They follow from its facts and specs; every word is quoted, and none is executed.
    """
    from fsbench.api.replay import replays
    from leaderboard.board.board import Board

    require(board)
    found = replays(Board.open(board).entry(entry), str(board))
    if shape is Format.JSON:
        console.emit_json({"entry": entry, "machines": [each.as_json() for each in found]})
        return
    typer.echo(f"# entry {shlex.quote(entry)}; data sets: --data or FSBENCH_DATA")
    for each in found:
        typer.echo(each.script(), nl=False)
