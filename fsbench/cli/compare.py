"""`fsbench compare`: is one entry better, and how many episodes show it?"""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fsbench.api.options import TaskOptions
from fsbench.cli import console, options

Board = Annotated[Path | None, typer.Option("--board", help="Folder of the leaderboard.")]


@options.command("compare", TaskOptions, "tasks")
def compare(
    chosen: TaskOptions,
    a: str = Argument(..., metavar="A", help="Results folder, or name of an entry on --board."),
    b: str = Argument(..., metavar="B", help="Results folder or entry to compare with."),
    board: Board = None,
    gap: float | None = Option(
        None, help="Count the episodes that detect this gap (percent points), not the observed one."
    ),
    as_json: options.Json = False,
) -> None:
    """Compare two entries on shared episodes, per task and overall; one table per head and size."""
    from fsbench.api.compare import LEGEND
    from fsbench.api.compare import compare as compare_entries

    comparisons = compare_entries(
        a, b, tasks=chosen.task_names, board=board, gap=None if gap is None else gap / 100
    )
    if as_json:
        console.emit_json([comparison.model_dump(mode="json") for comparison in comparisons])
        return
    console.show_tables(comparisons.tables())
    console.log(LEGEND)
