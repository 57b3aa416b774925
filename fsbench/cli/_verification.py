"""`fsbench leaderboard verify` and `reproduce`: recompute an entry from its weights."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from leaderboard.board.badges import Badge

Entry = Annotated[str, typer.Argument(help="Name of the entry.")]
Model = Annotated[
    str,
    typer.Option("-m", "--model", help="Backbone of the entry: timm/NAME, run:DIR, FILE, ..."),
]
Episodes = Annotated[
    int, typer.Option("--episodes", min=1, help="Episodes to draw, over all tasks.")
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "-t", "--tasks", "--task", help="Only tasks that match these ids; folder:DIR for your own."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Seed for drawing the episodes; random by default."),
]
Format = Annotated[Literal["sh", "json"], typer.Option("--format", help="Format.")]


def verify(
    entry: Entry,
    model: Model,
    board: options.Board,
    episodes: Episodes = 20,
    tasks: Tasks = None,
    seed: Seed = None,
    arch: options.Arch = None,
    random_init: options.RandomInit = None,
    data: options.Data = None,
    cache: options.Cache = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    batch_size: options.BatchSize = None,
    workers: options.Workers = 2,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Recompute random episodes of an entry from its weights; exit 5 if outcomes differ.

    The outcome is stored in the entry as a badge, which the board shows. Threads default to those
    of the entry, so that on the same kind of machine every bit is equal.
    """
    from fsbench.api.machine import Machine, cache_folder
    from fsbench.api.request import Models
    from fsbench.api.verify import Check
    from fsbench.api.verify import verify as verify_entry
    from leaderboard.board.board import Board

    Board.existing(board)
    names = tuple(options.split(tasks))
    badge = verify_entry(
        board,
        entry,
        Models((model,), arch, random_init),
        Check(episodes, names) if seed is None else Check(episodes, names, seed),
        roots=options.split(data),
        machine=Machine(device, threads, workers, batch_size, cache_folder(cache)),
        yes=yes,
        report=console.reporter(),
    )
    show_badge(badge, as_json)
    refuse_failed(entry, badge)


def show_badge(badge: Badge, as_json: bool) -> None:
    """Print one line per task and, on stderr, how to repeat the check."""
    if as_json:
        console.emit_json(badge.model_dump(mode="json") | {"verdict": badge.verdict})
        return
    titles = ("task", "drawn", "recomputed", "outcomes", "flipped", "allowed", "verdict")
    rows = []
    for check in badge.cells:
        counts = (len(check.drawn), check.episodes, check.outcomes, check.flipped, check.allowed)
        rows.append((check.cell, *map(str, counts), check.verdict))
    console.table(badge.words, titles, rows)
    where = ", ".join(f"{k} {v}" for k, v in badge.environment.items())
    console.log(f"episodes drawn by --seed {badge.seed}; {where}")
    for difference in dict.fromkeys(d for check in badge.cells for d in check.differs):
        console.log(f"another environment than the entry's: {difference}")
    if badge.not_verified:
        console.log(f"not verified: {', '.join(badge.not_verified)}")


def refuse_failed(entry: str, badge: Badge) -> None:
    """Raise ValidationFailed naming what differs."""
    from fsbench.core.errors import ValidationFailed

    failed = [check for check in badge.cells if check.verdict == "failed"]
    if failed:
        listed = "\n  ".join(
            f"{c.cell}: {c.flipped} of {c.outcomes} outcomes differ, allowed are {c.allowed}"
            f"{'; ' + c.other if c.other else ''}; episodes {', '.join(map(str, c.wrong))}"
            for c in failed
        )
        raise ValidationFailed(
            f"'{entry}' does not follow from its weights\n  {listed}",
            fix="ask the submitter; the badge says how to repeat this check",
        )


def reproduce(entry: Entry, board: options.Board, shape: Format = "sh") -> None:
    """Print the environment and the commands that reproduce an entry's results.

    They follow from its recipe and specs; every word is quoted, and nothing is executed.
    """
    from fsbench.api.reproduce import reproduce as reproduce_entry
    from leaderboard.board.board import Board

    reproductions = reproduce_entry(Board.existing(board).entry(entry), str(board))
    if shape == "json":
        machines = [reproduction.as_json() for reproduction in reproductions]
        console.emit_json({"entry": entry, "machines": machines})
        return
    typer.echo(f"# entry {shlex.quote(entry)}; data sets: --data or FSBENCH_DATA")
    for reproduction in reproductions:
        typer.echo(reproduction.script(), nl=False)
