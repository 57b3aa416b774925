"""`fsbench leaderboard stats`: statistics over a whole board."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options
from fsbench.cli.leaderboard import group, require

if TYPE_CHECKING:
    from leaderboard.ranking.friedman import FriedmanTest
    from leaderboard.ranking.record import Branch, WinnerTree
    from leaderboard.ranking.summary import BoardStatistics


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


Shape = Annotated[Format, typer.Option("--format", help="Shape of the output.")]


def register(app: typer.Typer) -> None:
    group(app).command("stats")(stats)


def stats(board: options.Board, shape: Shape = Format.TABLE, cache: options.Cache = None) -> None:
    """Rank intervals, average ranks with their critical difference, and when which entry wins."""
    from fsbench.core.folders import cache_folder
    from leaderboard.board.standing import views
    from leaderboard.ranking.summary import summarize_board

    require(board)
    found = [
        summarize_board(view) for view in views(board, cache_folder(cache), console.reporter())
    ]
    if shape is Format.JSON:
        console.emit_json([each.model_dump(mode="json") for each in found])
        return
    for each in found:
        show(each)


def show(found: BoardStatistics) -> None:
    where = f"{found.board} {found.track}".strip()
    console.table(f"{where}: places", ("entry", "tier", "overall", "rank", "95 %"), places(found))
    if found.friedman:
        console.table(
            f"{where}: average ranks over {found.friedman.columns} columns",
            ("entry", "average rank"),
            [(name, f"{rank:.2f}") for name, rank in found.friedman.average_ranks.items()],
        )
        typer.echo("\n".join(tested(found.friedman)) + "\n")
    if found.winners:
        typer.echo("\n".join(grown(found.winners)) + "\n")
    for note in found.notes:
        console.log(note)


def places(found: BoardStatistics) -> list[tuple[str, ...]]:
    """Where an entry may stand, by the bootstrap over episodes."""
    entries = found.rank_intervals.entries if found.rank_intervals else ()
    return [
        (e.name, str(e.tier), f"{100 * e.overall:.2f}", str(e.rank), f"{e.low} to {e.high}")
        for e in entries
    ]


def tested(friedman: FriedmanTest) -> Iterator[str]:
    """Friedman's test and the sets that Nemenyi's cannot tell apart."""
    yield f"Friedman: chi-squared {friedman.chi2:.2f}, p {friedman.p:.3g}."
    yield (
        f"Critical difference {friedman.critical_difference:.2f} (Nemenyi, alpha "
        f"{friedman.alpha:g}); not told apart:"
    )
    yield from (f"  {', '.join(names)}" for names in friedman.cliques or (("none",),))


def grown(tree: WinnerTree) -> Iterator[str]:
    """When which entry wins, a question a line."""
    yield (
        f"Who wins which of {tree.cells} cells: the tree names {tree.explained:.0%}, of cells left "
        f"out {tree.left_out:.0%}; the most frequent winner alone {tree.baseline:.0%}."
    )
    yield from lines(tree.root)


def lines(branch: Branch, depth: int = 0, answer: str = "") -> Iterator[str]:
    indent = "  " * depth + answer
    if branch.question is None or branch.yes is None or branch.no is None:
        yield f"{indent}{branch.winner} ({branch.wins[branch.winner]} of {branch.cells})"
        return
    yield f"{indent}{branch.question}"
    yield from lines(branch.yes, depth + 1, "yes: ")
    yield from lines(branch.no, depth + 1, "no: ")
