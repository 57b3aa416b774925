"""`fsbench leaderboard methods`: pretraining methods beside their matched-compute controls."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import console, leaderboard, options


class Format(StrEnum):
    TABLE = "table"
    MD = "md"
    JSON = "json"
    CSV = "csv"


Shape = Annotated[Format, typer.Option("--format", help="Shape of the output.")]
Figures = Annotated[
    Path | None, typer.Option("--figures", help="Folder for pictures of the gains, as SVG.")
]


def register(app: typer.Typer) -> None:
    leaderboard.group(app).command("methods")(methods)


def methods(
    board: options.Board,
    shape: Shape = Format.TABLE,
    figures: Figures = None,
    cache: options.Cache = None,
) -> None:
    """Runs of our own by method: gain over plain training of the same plan, steps and images,
    spread over pretraining seeds, cost; a board a track."""
    from fsbench.core.folders import cache_folder
    from leaderboard.methods import tables
    from leaderboard.methods.board import read_method_boards

    leaderboard.require(board)
    boards = read_method_boards(board, cache_folder(cache), console.reporter())
    if figures is not None:
        from leaderboard.methods.figures import write_figures

        for path in write_figures(boards, figures):
            console.log(f"wrote {path}")
    if shape is Format.JSON:
        console.emit_json([method_board.model_dump(mode="json") for method_board in boards])
    elif shape is Format.CSV:
        typer.echo(tables.render_csv(boards), nl=False)
    elif shape is Format.MD:
        typer.echo("\n".join(map(tables.render_markdown, boards)), nl=False)
    else:
        for table in (
            table for method_board in boards for table in tables.make_tables(method_board)
        ):
            console.table(table.title, table.columns, table.rows)
            console.log(table.note)
