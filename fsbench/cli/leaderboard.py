"""`fsbench leaderboard`: show a board."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import console, options


class Format(StrEnum):
    TABLE = "table"
    MD = "md"
    JSON = "json"


Shape = Annotated[Format, typer.Option("--format", help="Shape of the output.")]


def register(app: typer.Typer) -> None:
    group(app).command("show")(show)


def group(app: typer.Typer) -> typer.Typer:
    """Commands `fsbench leaderboard ...`: each file of them (board_*.py) registers itself."""
    for known in app.registered_groups:
        if known.name == "leaderboard" and known.typer_instance is not None:
            return known.typer_instance
    made = typer.Typer(no_args_is_help=True, help="Boards: rank and compare entries.")
    app.add_typer(made, name="leaderboard")
    return made


def show(board: options.Board, shape: Shape = Format.TABLE, cache: options.Cache = None) -> None:
    """Verify every entry, rank them in tiers and print the board, a table a version of the
    evaluation (protocol and input size); as JSON a list of them."""
    print_board(board, shape, cache)


def require(board: Path) -> None:
    """Raises UsageError where there is no board."""
    from leaderboard.board.board import Board

    Board.existing(board)


def print_board(board: Path, shape: Format = Format.TABLE, cache: Path | None = None) -> None:
    """Print the board in a folder on stdout, the rules of its tables on stderr."""
    from fsbench.api.leaderboard import leaderboard

    ranked = leaderboard(board, cache=cache, progress=True)
    if shape is Format.JSON:
        console.emit_json(ranked.to_json())
    elif shape is Format.MD:
        typer.echo(ranked.to_markdown(), nl=False)
    else:
        for table in ranked.tables():
            console.table(table.title, table.columns, table.rows)
            console.log(table.note)
