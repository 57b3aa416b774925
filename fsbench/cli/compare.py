"""`fsbench compare`: is one entry better than another?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.api.compare import Comparison, Gap

A = Annotated[str, typer.Argument(metavar="A", help="Results folder, or an entry on --board.")]
B = Annotated[str, typer.Argument(metavar="B", help="Another one.")]
Board = Annotated[Path | None, typer.Option("--board", help="Folder of the leaderboard.")]

COLUMNS = (
    *("task", "pairs", "A", "B", "A - B", "95 % interval"),
    *("p", "p Holm", "d", "P(A > B)", "needed", "better"),
)
LEGEND = (
    "points; paired over shared episodes or test images. p: sign-flip permutation test, Holm over "
    "the cells; d: mean of A - B over its sd; P(A > B): share of pairs, ties by half; needed: "
    "pairs a cell that find such a gap with power 0.8; the interval covers the draw of episodes, "
    "not pretraining seeds."
)


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)


def compare(
    a: A,
    b: B,
    tasks: options.Tasks = None,
    board: Board = None,
    as_json: options.Json = False,
) -> None:
    """Paired comparison of two entries, cell by cell and overall, one table a track."""
    from fsbench.api.compare import compare as run

    found = run(a, b, options.split(tasks), board)
    if as_json:
        console.emit_json([each.model_dump(mode="json") for each in found])
        return
    for each in found:
        show(each)
    console.log(LEGEND)


def show(found: Comparison) -> None:
    rows = [row(gap) for gap in (*found.cells, found.overall, *found.dense)]
    console.table(f"A: {found.a}, B: {found.b}, {found.track}", COLUMNS, rows)
    typer.echo(f"{found.overall.words}.")
    typer.echo(f"{won(found)}\n")


def row(gap: Gap) -> tuple[str, ...]:
    from fsbench.api.wording import small

    points = (f"{100 * value:.2f}" for value in (gap.a, gap.b, gap.gap))
    return (
        *(gap.task, str(gap.n), *points, f"{100 * gap.low:.2f} to {100 * gap.high:.2f}"),
        *(small(gap.p), "-" if gap.p_holm is None else small(gap.p_holm)),
        *("-" if gap.d is None else f"{gap.d:.2f}", f"{gap.superiority:.2f}"),
        *("-" if gap.needed is None else str(gap.needed), gap.better or "-"),
    )


def won(found: Comparison) -> str:
    """Cells by the sign of their gap."""
    from fsbench.api.wording import small

    cells = found.won
    return (
        f"Cells won by A {cells.a}, by B {cells.b}, tied {cells.tied}: exact binomial p "
        f"{small(cells.p)} (cells over the same episodes count as one)."
    )
