"""`fsbench compare` and `fsbench power`: is one entry better, and how many episodes show it?"""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fsbench.cli import console, options

Board = Annotated[Path | None, typer.Option("--board", help="Folder of the leaderboard.")]


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)
    app.command("power")(power)


def compare(
    a: str = Argument(..., metavar="A", help="Results folder, or name of an entry on --board."),
    b: str = Argument(..., metavar="B", help="Results folder or entry to compare with."),
    tasks: options.Tasks = None,
    board: Board = None,
    as_json: options.Json = False,
) -> None:
    """Compare two entries on shared episodes, per task and overall; one table per head and size."""
    from fsbench.api.compare import LEGEND
    from fsbench.api.compare import compare as compare_entries

    comparisons = compare_entries(a, b, tasks=options.split(tasks, "tasks"), board=board)
    if as_json:
        console.emit_json([comparison.model_dump(mode="json") for comparison in comparisons])
        return
    console.show_tables([comparison.table() for comparison in comparisons])
    console.log(LEGEND)


def power(
    examples: tuple[str, str] = Option(
        ..., "--like", metavar="A B", help="Two results folders, or entries on --board."
    ),
    gap: float = Option(0.5, help="Difference to detect, in percent points."),
    tasks: options.Tasks = None,
    board: Board = None,
    alpha: float = Option(0.05, help="Significance level (two-sided)."),
    power: float = Option(0.8, help="Probability of detecting the gap."),
    as_json: options.Json = False,
) -> None:
    """Compute how many episodes distinguish two entries; one table per head and size.

    The number follows from the spread of their paired outcomes.
    """
    from fsbench.api.compare import analyze_power
    from fsbench.core.statistics import Goal

    goal = Goal(gap=gap / 100, alpha=alpha, power=power)
    comparisons = analyze_power(*examples, goal, tasks=options.split(tasks, "tasks"), board=board)
    if as_json:
        console.emit_json([comparison.plan(goal) for comparison in comparisons])
        return
    console.show_tables([comparison.plan_table(goal) for comparison in comparisons])
    console.log(
        "Percent points, paired over shared episodes; two-sided z test, alpha "
        f"{goal.alpha:g}, power {goal.power:g}. The overall line counts episodes per task. Among "
        "several entries a board's Holm adjustment requires more."
    )
