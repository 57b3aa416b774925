"""`fsbench demo`: pretrain, evaluate and rank on generated images, without a download."""

from pathlib import Path

from typer import Option

from fsbench.cli import options


def demo(
    output: Path = Option(
        Path("demo"), "-o", "--output", help="Folder for runs, results and the board."
    ),
    methods: list[str] | None = Option(
        None, help="Methods, comma-separated, or all (about 15 minutes); normal,lw by default."
    ),
    threads: options.Threads = None,
) -> None:
    """Pretrain methods on generated images, evaluate, submit and rank them, in a few minutes.

    A stopped demo resumes; further methods join the board.
    """
    from fsbench.api.demo import DEFAULT, run_demo
    from fsbench.cli.console import reporter
    from fsbench.cli.leaderboard import show

    board = run_demo(output, threads, reporter(), options.split(methods) or DEFAULT)
    show(board, seeds=False)
