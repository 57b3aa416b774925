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
    require(board)
    print_board(board, shape, cache)


def require(board: Path) -> None:
    """Raises UsageError where there is no board."""
    from leaderboard.board.board import Board

    Board.existing(board)


def print_board(board: Path, shape: Format = Format.TABLE, cache: Path | None = None) -> None:
    """The board at this folder on stdout; its rules on stderr for tables."""
    from fsbench.core.folders import cache_folder
    from leaderboard.board.standing import views
    from leaderboard.reports import render

    seen = views(board, cache_folder(cache), console.reporter())
    if shape is Format.JSON:
        console.emit_json([render.as_json(view) for view in seen])
    elif shape is Format.MD:
        typer.echo("\n".join(map(render.markdown, seen)), nl=False)
    else:
        for table in (table for view in seen for table in render.tables(view)):
            console.table(table.title, table.columns, table.rows)
            console.log(table.note)
