"""`fsbench demo`: pretrain, evaluate and rank on generated images, without a download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import options

Folder = Annotated[
    Path, typer.Option("-o", "--output", help="Folder for runs, results and the board.")
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        help="Methods, comma-separated, or all (about 15 minutes); normal,seal by default.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    output: Folder = Path("demo"), methods: Methods = None, threads: options.Threads = None
) -> None:
    """Pretrain methods on generated images, evaluate, submit and rank them, in a few minutes.

    A stopped demo resumes; further methods join the board.
    """
    from fsbench.api.demo import DEFAULT, run_demo
    from fsbench.cli.console import reporter
    from fsbench.cli.leaderboard import print_board

    print_board(run_demo(output, threads, reporter(), options.split(methods) or DEFAULT))
