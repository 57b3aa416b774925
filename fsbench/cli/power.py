"""`fsbench power`: how many episodes would tell two entries apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.api.power import Needed, Plan

Like = Annotated[
    tuple[str, str],
    typer.Option("--like", metavar="A B", help="Two results folders, or entries on --board."),
]
Gap = Annotated[float, typer.Option("--gap", help="Difference to tell apart, in points.")]
Alpha = Annotated[float, typer.Option("--alpha", help="Level of the two-sided test.")]
Power = Annotated[float, typer.Option("--power", help="Probability of finding the gap.")]
Board = Annotated[Path | None, typer.Option("--board", help="Folder of the leaderboard.")]
Tasks = Annotated[
    list[str] | None, typer.Option("-t", "--tasks", "--task", help="Only these tasks; commas.")
]


def register(app: typer.Typer) -> None:
    app.command("power")(power)


def power(
    like: Like,
    gap: Gap = 0.5,
    tasks: Tasks = None,
    board: Board = None,
    alpha: Alpha = 0.05,
    power: Power = 0.8,
    as_json: options.Json = False,
) -> None:
    """Episodes needed to tell two entries apart, from the real spread of their paired outcomes."""
    from fsbench.api.power import plan
    from fsbench.core.power import Goal

    goal = Goal(gap=gap / 100, alpha=alpha, power=power)
    found = plan(*like, goal, options.split(tasks), board)
    if as_json:
        console.emit_json(found.model_dump(mode="json"))
    else:
        show(found)


def show(found: Plan) -> None:
    goal = found.goal
    wanted = f"episodes for {100 * goal.gap:g}"
    columns = ("task", "episodes", "A - B", "sd of A - B", "detectable", "at 600", wanted)
    rows = [row(needed) for needed in (*found.cells, found.overall, *found.dense)]
    console.table(f"A: {found.a}, B: {found.b}", columns, rows)
    console.log(
        "points; paired over shared episodes, two-sided z test, alpha "
        f"{goal.alpha:g}, power {goal.power:g}; episodes of every cell for the overall line. Among "
        "several entries a board's Holm adjustment asks for more."
    )


def row(needed: Needed) -> tuple[str, ...]:
    points = (needed.gap, needed.sd, needed.detectable, needed.detectable_600)
    shown = (f"{100 * value:.2f}" for value in points)
    return (needed.task, str(needed.episodes), *shown, str(needed.needed))
