"""`fsbench leaderboard`: make, show, check and analyze boards."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from fsbench.api.options import VerifyOptions
from fsbench.cli import console, options
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.progress import format_count

if TYPE_CHECKING:
    from leaderboard.badges import Badge

Entry = Annotated[str, Argument(help="Name of the entry.")]
TAKEN_FROM_ENTRY = ("name", "pool", "layers", "features", "mean", "std")
"""Options of models that `verify` takes from the entry."""


@options.command("leaderboard show")
def show(
    board: options.Board,
    seeds: bool = Option(False, "--seeds", help="Print the seeds of a row below it."),
    figures: Path | None = Option(None, help="Folder for figures of the tiers (SVG)."),
    as_json: options.Json = False,
) -> None:
    """Verify all entries, rank them in tiers and print one table per protocol and input size."""
    from fsbench.api.leaderboard import leaderboard

    ranked = leaderboard(board, progress=True)
    if figures is not None:
        from leaderboard.figures import write_tiers

        for path in write_tiers(ranked.tracks, figures):
            console.log(f"wrote {path}")
    if as_json:
        console.emit_json(ranked.to_json())
    else:
        console.show_tables(ranked.tables(seeds))


@options.command("leaderboard build")
def build(
    board: options.Board, site: Path = Option(..., "-o", "--output", help="Folder of the site.")
) -> None:
    """Rank a board and write a page that opens from disk, SITE/index.html, and scores as files."""
    from leaderboard.site.page import build_site

    typer.echo(build_site(board, site, console.reporter()))


@options.command("leaderboard check")
def check(
    board: options.Board,
    base: str | None = Option(
        None, help="Commit before a pull request: only new entries may come."
    ),
    base_folder: Path | None = Option(None, help="The same, as a folder with the board as it was."),
    allow_maintainer: bool = Option(
        False, "--allow-maintainer", help="Accept all other changes too, and list them."
    ),
) -> None:
    """Check entries, hashes, badges and files of a board; exit 5 and list every problem.

    Run it with --base on every pull request to a repository of entries.
    """
    from leaderboard.rules.board import inspect_board
    from leaderboard.rules.changes import CHANGE_RULES, compare_folders, compare_with_base

    if base is not None and base_folder is not None:
        raise UsageError("--base and --base-folder", fix="give one of them")
    changes = []
    if base is not None:
        changes = list(CHANGE_RULES.find_problems(board, compare_with_base(board, base)))
    elif base_folder is not None:
        changes = list(CHANGE_RULES.find_problems(board, compare_folders(board, base_folder)))
    elif allow_maintainer:
        raise UsageError("--allow-maintainer without --base", fix="give --base COMMIT")
    inspection = inspect_board(board)
    if allow_maintainer:
        for problem in changes:
            console.log(f"allowed for a maintainer: {problem.where}: {problem.text}")
    else:
        inspection.problems[:0] = changes
    for network, texts in sorted(inspection.suspicions.items()):
        console.log(f"{network}: {', '.join(texts)}")
    if inspection.problems:
        listed = "\n  ".join(map(str, inspection.problems))
        count = format_count(len(inspection.problems), "problem")
        raise ValidationFailed(f"{count} in {inspection.counts}\n  {listed}")
    typer.echo(f"ok: {inspection.counts}")


@options.command("leaderboard init")
def init(
    board: options.Board,
    official: str | None = Option(
        None,
        help="Official board: its newest version by cdfsl or transfer, one by e.g. transfer-2.",
    ),
    install_from: str | None = Option(
        None, help="What the workflows of the repository install: git+https://HOST/fsbench@COMMIT."
    ),
) -> None:
    """Start a board, an official one with frozen columns or a free one, and its repository.

    Beside board.json: README with the tables, CONTRIBUTING, workflows that check pull requests and
    render the tables, .gitignore and .gitattributes.
    """
    from leaderboard.repository import init_board

    file = init_board(board, official, install_from)
    columns = format_count(len(file.columns or ()), "column")
    kind = "free" if file.version is None else f"{columns}, {file.date}"
    typer.echo(f"{board}: {file.title} ({kind})")
    if install_from is None:
        console.log("set the repository variable FSBENCH to what the workflows install")


@options.command("leaderboard remove")
def remove(
    entry: Entry,
    board: options.Board,
    reason: str = Option(..., help="Why; it stays in the board's history."),
) -> None:
    """Take an entry from a board; the same outcomes are refused later."""
    from leaderboard.store import Board

    Board.open(board).remove(entry, reason)
    typer.echo(f"{board}: {entry} removed")


@options.command("leaderboard readme")
def readme(board: options.Board) -> None:
    """Render the tables of a board into its README.md, between the two marks."""
    from leaderboard.repository import render_readme

    typer.echo(f"rendered {render_readme(board, console.reporter())}")


@options.command("leaderboard methods")
def methods(
    board: options.Board,
    figures: Path | None = Option(None, help="Folder for figures of the gains (SVG)."),
    as_json: options.Json = False,
) -> None:
    """Compare pretraining methods with their compute-matched baseline: gain, seed spread, cost."""
    from leaderboard.figures import write_figures
    from leaderboard.methods import read_method_boards
    from leaderboard.render.methods import make_tables

    tracks = read_method_boards(board, console.reporter())
    for path in write_figures(tracks, figures) if figures else ():
        console.log(f"wrote {path}")
    if as_json:
        console.emit_json([track.model_dump(mode="json") for track in tracks])
    else:
        console.show_tables([table for track in tracks for table in make_tables(track)])


@options.command("leaderboard stats")
def stats(
    board: options.Board,
    stability: bool = Option(
        False, "--stability", help="Compare heads, sizes, shots, protocols and data sets instead."
    ),
    figures: Path | None = Option(None, help="Folder for figures, of average ranks or tau (SVG)."),
    as_json: options.Json = False,
) -> None:
    """Print rank intervals; draw average ranks with the critical difference.

    --stability prints who is first under every choice, and Kendall's tau between choices.
    """
    from leaderboard.figures import write_ranks, write_stability
    from leaderboard.ranking.rank_intervals import bootstrap_ranks
    from leaderboard.ranking.stability import Stability
    from leaderboard.render.stability import make_stability_tables
    from leaderboard.render.terminal import make_rank_table
    from leaderboard.tables import rank_board

    tracks = rank_board(board, console.reporter())
    if stability:
        compared = Stability.of({t.label: (t.ranking, t.contenders) for t in tracks})
        for path in write_stability(compared, figures) if figures else ():
            console.log(f"wrote {path}")
        if as_json:
            console.emit_json(compared.model_dump(mode="json"))
        else:
            console.show_tables(make_stability_tables(compared, tracks[0].name))
        return
    ranks = {t.label: bootstrap_ranks(t.ranking, t.contenders) for t in tracks}
    for path in write_ranks(tracks, figures) if figures else ():
        console.log(f"wrote {path}")
    if as_json:
        intervals = {t.label: [r.model_dump(mode="json") for r in ranks[t.label]] for t in tracks}
        console.emit_json(intervals)
    else:
        console.show_tables([make_rank_table(track, ranks[track.label]) for track in tracks])


@options.command("leaderboard verify", VerifyOptions, without=TAKEN_FROM_ENTRY)
def verify(chosen: VerifyOptions, as_json: options.Json = False) -> None:
    """Recompute random episodes of every column of an entry; exit 5 if outcomes differ.

    An entry of several seeds is verified one network at a time: the weights say which. -t names
    columns of the entry, by default all.

    The outcome is stored in the entry as a badge; the board shows it as unsigned claim unless a key
    of the board signs it. Threads default to those of the entry, so that on the same kind of
    machine every bit is equal; another environment gives the verdict tolerant at most.
    """
    from fsbench.api.verify import verify as verify_entry
    from leaderboard.store import Board

    badge = verify_entry(chosen, console.reporter())
    shown = str(Board.open(chosen.board).entry(badge.entry).verification)
    show_badge(badge, shown, as_json)
    if failed := [str(check) for check in badge.checks if check.verdict == "failed"]:
        listed = "\n  ".join(failed)
        raise ValidationFailed(
            f"'{badge.entry}' does not follow from its weights\n  {listed}",
            fix="ask the submitter; the badge says how to repeat this check",
        )


def show_badge(badge: "Badge", shown: str, as_json: bool) -> None:
    """Print one line per task, what the board shows of the entry, and how to repeat the check."""
    if as_json:
        computed = {"verdict": badge.verdict, "board_shows": shown}
        console.emit_json(badge.model_dump(mode="json") | computed)
        return
    titles = ("task", "drawn", "recomputed", "queries", "outcomes", "flipped", "allowed", "verdict")
    rows = []
    for check in badge.checks:
        for kind, count in check.flips.items():
            numbers = (check.column, len(check.drawn), check.episodes, kind)
            flips = (count.outcomes, count.flipped, check.allow_flips(count), check.verdict)
            rows.append((*numbers, *flips))
    console.table(f"this run: {badge}", titles, rows)
    console.log(f"the board shows: {shown}")
    where = ", ".join(f"{k} {v}" for k, v in badge.environment.items())
    console.log(f"episodes drawn by --seed {badge.seed}; {where}")
    for difference in dict.fromkeys(d for check in badge.checks for d in check.differs):
        console.log(f"another environment than the entry's, so tolerant at most: {difference}")
    if badge.not_verified:
        console.log(f"not verified: {', '.join(badge.not_verified)}")


@options.command("leaderboard recompute")
def recompute(entry: Entry, board: options.Board) -> None:
    """Print a shell script: the environment and the commands that recompute an entry's results.

    They follow from its recipe and specs; every word is quoted, and nothing is executed.
    """
    from fsbench.api.recompute import recompute as recompute_entry
    from leaderboard.store import Board

    typer.echo("\n".join(recompute_entry(Board.open(board).entry(entry), str(board))))
