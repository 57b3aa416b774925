"""`fsbench demo`: the main job on generated images, in a few minutes, without any download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import options

Folder = Annotated[Path, typer.Option("-o", "--output", help="Folder for runs, results and board.")]


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(output: Folder = Path("demo"), threads: options.Threads = None) -> None:
    """Pretrain normal and SEAL, evaluate both and a random control, submit, rank."""
    from fsbench.api.demo import run_demo
    from fsbench.cli.console import reporter
    from fsbench.cli.leaderboard import print_board

    print_board(run_demo(output, threads, reporter()))
