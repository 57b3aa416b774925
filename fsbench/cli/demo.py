"""`fsbench demo`: the main job on generated images, in a few minutes, without any download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import options

Folder = Annotated[Path, typer.Option("-o", "--output", help="Folder for runs, results and board.")]
Methods = Annotated[
    list[str] | None,
    typer.Option("--methods", help="Names by comma, or all (some 15 minutes); normal,seal."),
]


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    output: Folder = Path("demo"), methods: Methods = None, threads: options.Threads = None
) -> None:
    """Pretrain methods and their controls, evaluate them and a random one, submit, rank.

    A demo that was stopped goes on; methods asked for later join the board.
    """
    from fsbench.api.demo import DEFAULT, run_demo
    from fsbench.cli.console import reporter
    from fsbench.cli.leaderboard import print_board

    print_board(run_demo(output, threads, reporter(), options.split(methods) or DEFAULT))
