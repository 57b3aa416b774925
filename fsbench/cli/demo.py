"""`fsbench demo`: pretrain, evaluate and rank on generated images, without a download."""

import shutil
import sys
from pathlib import Path

import typer
from typer import Option

from fsbench.api.options import Machine
from fsbench.cli import console, options


@options.command("demo", Machine, "threads")
def demo(
    machine: Machine,
    output: Path = Option(
        Path("demo"), "-o", "--output", help="Folder for runs, results and the board."
    ),
) -> None:
    """Pretrain two networks on generated images, evaluate, submit and rank them, in a few minutes.

    A stopped demo resumes.
    """
    from fsbench.api.demo import SITE, describe_demo, run_demo
    from fsbench.api.leaderboard import leaderboard

    board = run_demo(output, machine.threads, console.reporter())
    ranked = leaderboard(board)
    console.show_tables(ranked.tables()[:1])
    console.print_lines(describe_demo(ranked))
    typer.echo(f"board: {board}; its page: {output / SITE / 'index.html'}")
    typer.echo("real backbones, ranked: leaderboard/studies/real/README.md of the repository")
    if shutil.which("fsbench") is None and sys.prefix != sys.base_prefix:
        typer.echo(f"to call fsbench: source {Path(sys.prefix, 'bin', 'activate')}")
    command = console.suggest("benchmark", "-m", "FILE.pth@ARCH", "-t", "toy", "--shots", "1,5")
    typer.echo(f"a checkpoint of yours, {command}")
