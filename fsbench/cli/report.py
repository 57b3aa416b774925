"""`fsbench report`: results or a board as the table of a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import console, options
from leaderboard import reports as downloads

Results = Annotated[
    list[Path] | None, typer.Argument(help="Results folders or files, as -o wrote them.")
]
Board = Annotated[Path | None, typer.Option("--board", help="A leaderboard instead of results.")]
Shape = Annotated[
    str, typer.Option("--format", help=f"One of {', '.join(downloads.FORMATS.names())}.")
]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="File; else stdout.")]
Control = Annotated[
    str | None, typer.Option("--control", help="Model that the others are marked against.")
]


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    results: Results = None,
    shape: Shape = "md",
    output: Output = None,
    control: Control = None,
    board: Board = None,
    cache: options.Cache = None,
) -> None:
    """Verify results and print them as tables, one a track of the evaluation: the best and its ties
    bold, significance against a control marked, the rules in the caption."""
    from fsbench.core.folders import cache_folder
    from leaderboard.reports import report as reports

    require_one(results, board)
    made = downloads.FORMATS.load(shape).make
    if board:
        sheets = reports.of_board(board, control, cache_folder(cache), console.reporter())
    else:
        sheets = reports.of_results(results or [], control)
    text = made(sheets)
    if output is None:
        typer.echo(text, nl=False)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf8", newline="")
    console.log(f"wrote {output}")


def require_one(results: list[Path] | None, board: Path | None) -> None:
    """Results or an existing board. Raises UsageError."""
    from fsbench.core.errors import UsageError

    if bool(results) == (board is not None):
        raise UsageError(
            "report takes results or a board", fix="give results folders, or --board DIR alone"
        )
    if board is not None and not board.is_dir():
        raise UsageError(f"there is no board at {board}", fix="give the folder of a board")
