"""`fsbench leaderboard`: make, show, check and analyze boards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fsbench.cli import _verification, console, options

if TYPE_CHECKING:
    from leaderboard.ranking.friedman import FriedmanTest
    from leaderboard.ranking.summary import BoardStatistics
    from leaderboard.ranking.winner_tree import TreeBranch, WinnerTree

ShowFormat = Annotated[Literal["table", "md", "json"], typer.Option("--format", help="Format.")]
StatsFormat = Annotated[Literal["table", "json"], typer.Option("--format", help="Format.")]
MethodsFormat = Annotated[
    Literal["table", "md", "json", "csv"], typer.Option("--format", help="Format.")
]
Site = Annotated[Path, typer.Option("-o", "--output", help="Folder of the site.")]
Official = Annotated[
    str | None, typer.Option("--official", help="Name of an official board: cdfsl or transfer.")
]
OfficialVersion = Annotated[
    int | None, typer.Option("--version", help="Version of the official board; newest by default.")
]
Version = Annotated[int, typer.Option("--version", min=1, help="Version to freeze.")]
About = Annotated[str | None, typer.Option("--about", help="Purpose of the board.")]
Figures = Annotated[
    Path | None, typer.Option("--figures", help="Folder for figures of the gains (SVG).")
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Make, show, check and verify leaderboards.")
    commands = (show, build, check, init, boards, freeze, methods, stats)
    for command in (*commands, _verification.verify, _verification.reproduce):
        group.command(command.__name__)(command)
    app.add_typer(group, name="leaderboard")


def show(board: options.Board, shape: ShowFormat = "table", cache: options.Cache = None) -> None:
    """Verify all entries, rank them in tiers and print one table per protocol and input size."""
    print_board(board, shape, cache)


def print_board(
    board: Path, shape: Literal["table", "md", "json"] = "table", cache: Path | None = None
) -> None:
    """Print the board in a folder on stdout, the rules of its tables on stderr."""
    from fsbench.api.leaderboard import leaderboard

    ranked = leaderboard(board, cache=cache, progress=True)
    if shape == "json":
        console.emit_json(ranked.to_json())
    elif shape == "md":
        typer.echo(ranked.to_markdown(), nl=False)
    else:
        for table in ranked.tables():
            console.table(table.title, table.columns, table.rows)
            console.log(table.note)


def build(board: options.Board, site: Site, cache: options.Cache = None) -> None:
    """Rank a board and write it as one page that opens from disk, SITE/index.html."""
    from fsbench.core.io import cache_folder
    from leaderboard.site.page import build_site

    typer.echo(build_site(board, site, cache_folder(cache), console.reporter()))


def check(board: options.Board) -> None:
    """Check entries, hashes, badges and files of a board; exit 5 and list every problem.

    Run it on every pull request to a repository of entries.
    """
    from fsbench.core.errors import ValidationFailed
    from leaderboard.board.board import Board
    from leaderboard.submission.inspection import inspect_board

    Board.existing(board)
    inspection = inspect_board(board)
    counts = (
        f"{inspection.entries} entries, {inspection.results} results, "
        f"{inspection.episodes} episodes, {inspection.badges} badges"
    )
    if inspection.problems:
        listed = "\n  ".join(map(str, inspection.problems))
        raise ValidationFailed(f"{len(inspection.problems)} problems in {counts}\n  {listed}")
    typer.echo(f"ok: {counts}")


def init(board: options.Board, official: Official = None, version: OfficialVersion = None) -> None:
    """Start a board: an official one with frozen columns, or a free one for any results."""
    from leaderboard.board.official import init_board

    file = init_board(board, official, version)
    kind = "free" if file.version is None else f"{len(file.columns or ())} columns, {file.date}"
    typer.echo(f"{board}: {file.title} ({kind})")


def boards(as_json: options.Json = False) -> None:
    """List the official boards with their versions, dates and columns."""
    from leaderboard.board import official

    if as_json:
        console.emit_json(official.describe_official_boards())
        return
    console.table("official boards", official.OFFICIAL_HEADER, official.list_official_tracks())
    console.log(official.OFFICIAL_NOTE)


def freeze(
    board: options.Board, version: Version = 1, about: About = None, cache: options.Cache = None
) -> None:
    """Freeze columns, rule and date of your own board as a version that can be cited.

    Digests in board.json reveal a copy that was changed afterwards.
    """
    from fsbench.core.io import cache_folder
    from leaderboard.board.versions import freeze_board

    file = freeze_board(board, version, about, cache_folder(cache), console.reporter())
    typer.echo(f"{board}: {file.title} ({len(file.columns or ())} columns, {file.date})")


def methods(
    board: options.Board,
    shape: MethodsFormat = "table",
    figures: Figures = None,
    cache: options.Cache = None,
) -> None:
    """Compare pretraining methods with their compute-matched baseline: gain, seed spread, cost."""
    from fsbench.core.io import cache_folder
    from leaderboard.board.board import Board
    from leaderboard.methods import tables
    from leaderboard.methods.board import read_method_boards

    Board.existing(board)
    tracks = read_method_boards(board, cache_folder(cache), console.reporter())
    if figures is not None:
        from leaderboard.methods.figures import write_figures

        for path in write_figures(tracks, figures):
            console.log(f"wrote {path}")
    if shape == "json":
        console.emit_json([track.model_dump(mode="json") for track in tracks])
    elif shape == "csv":
        typer.echo(tables.render_csv(tracks), nl=False)
    elif shape == "md":
        typer.echo("\n".join(map(tables.render_markdown, tracks)), nl=False)
    else:
        for table in (table for track in tracks for table in tables.make_tables(track)):
            console.table(table.title, table.columns, table.rows)
            console.log(table.note)


def stats(board: options.Board, shape: StatsFormat = "table", cache: options.Cache = None) -> None:
    """Print rank intervals, average ranks with critical difference, and which entry wins where."""
    from fsbench.core.io import cache_folder
    from leaderboard.board.board import Board
    from leaderboard.board.tables import rank_board
    from leaderboard.ranking.summary import summarize_board

    Board.existing(board)
    tracks = rank_board(board, cache_folder(cache), console.reporter())
    statistics = [summarize_board(track) for track in tracks]
    if shape == "json":
        console.emit_json([summary.model_dump(mode="json") for summary in statistics])
        return
    for summary in statistics:
        show_statistics(summary)


def show_statistics(summary: BoardStatistics) -> None:
    """Print the statistics of one track."""
    where = f"{summary.board} {summary.track}".strip()
    intervals = summary.rank_intervals.entries if summary.rank_intervals else ()
    console.table(
        f"{where}: ranks",
        ("entry", "tier", "overall", "rank", "95 %"),
        [
            (e.name, str(e.tier), f"{100 * e.overall:.2f}", str(e.rank), f"{e.low} to {e.high}")
            for e in intervals
        ],
    )
    if summary.friedman:
        console.table(
            f"{where}: average ranks over {summary.friedman.columns} columns",
            ("entry", "average rank"),
            [(name, f"{rank:.2f}") for name, rank in summary.friedman.average_ranks.items()],
        )
        typer.echo("\n".join(friedman_lines(summary.friedman)) + "\n")
    if summary.winners:
        typer.echo("\n".join(winner_lines(summary.winners)) + "\n")
    for note in summary.notes:
        console.log(note)


def friedman_lines(friedman: FriedmanTest) -> Iterator[str]:
    """Yield Friedman's test and the sets that Nemenyi's test does not separate."""
    yield f"Friedman: chi-squared {friedman.chi2:.2f}, p {friedman.p:.3g}."
    yield (
        f"Critical difference {friedman.critical_difference:.2f} (Nemenyi, alpha "
        f"{friedman.alpha:g}); not significantly different:"
    )
    yield from (f"  {', '.join(names)}" for names in friedman.cliques or (("none",),))


def winner_lines(tree: WinnerTree) -> Iterator[str]:
    """Yield which entry wins where, one question per line."""
    yield (
        f"Winners of {tree.cells} tasks: the tree names {tree.explained:.0%} of them, "
        f"{tree.left_out:.0%} if the task is left out of the fit; always naming the most frequent "
        f"winner, {tree.baseline:.0%}."
    )
    yield from branch_lines(tree.root)


def branch_lines(branch: TreeBranch, depth: int = 0, answer: str = "") -> Iterator[str]:
    """Yield the questions of a branch and its leaves, indented."""
    indent = "  " * depth + answer
    if branch.question is None or branch.yes is None or branch.no is None:
        yield f"{indent}{branch.winner} ({branch.wins[branch.winner]} of {branch.cells})"
        return
    yield f"{indent}{branch.question}"
    yield from branch_lines(branch.yes, depth + 1, "yes: ")
    yield from branch_lines(branch.no, depth + 1, "no: ")
