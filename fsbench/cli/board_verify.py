"""`fsbench leaderboard verify`: run episodes of an entry again from the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options
from fsbench.cli.leaderboard import group, require

if TYPE_CHECKING:
    from leaderboard.board.badges import Badge, CellCheck

Entry = Annotated[str, typer.Argument(help="Name of the entry.")]
Model = Annotated[
    str, typer.Option("-m", "--model", help="The backbone that the entry is of, as for benchmark.")
]
Episodes = Annotated[int, typer.Option("--episodes", min=1, help="Episodes to draw, in all.")]
Tasks = Annotated[
    list[str] | None,
    typer.Option("-t", "--tasks", "--task", help="Only cells that fit these ids; folder:DIR."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Which episodes are drawn; chance says where left out."),
]


def register(app: typer.Typer) -> None:
    group(app).command("verify")(verify)


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
    """Run randomly drawn episodes of an entry again from its weights and demand equal outcomes.

    What came out is stored in the entry as a badge, which the board shows; a failure exits 5.
    Threads are those of the entry, so that on a like machine every bit is the same.
    """
    from fsbench.api.evaluate import Models
    from fsbench.api.machine import Machine, cache_folder
    from fsbench.api.verify import Check
    from fsbench.api.verify import verify as run

    require(board)
    machine = Machine(device, threads, workers, batch_size, cache_folder(cache))
    given = {} if seed is None else {"seed": seed}
    badge = run(
        board,
        entry,
        Models((model,), arch, random_init),
        Check(episodes, tuple(options.split(tasks)), **given),
        roots=options.split(data),
        machine=machine,
        yes=yes,
        report=console.reporter(),
    )
    show(badge, as_json)
    refuse_failed(entry, badge)


def show(badge: Badge, as_json: bool) -> None:
    if as_json:
        console.emit_json(badge.model_dump(mode="json") | {"verdict": badge.verdict})
        return
    titles = ("cell", "drawn", "episodes run", "outcomes", "flipped", "allowed", "verdict")
    console.table(badge.words, titles, [row(cell) for cell in badge.cells])
    where = ", ".join(f"{k} {v}" for k, v in badge.environment.items())
    console.log(f"episodes drawn by --seed {badge.seed}; {where}")
    for difference in dict.fromkeys(d for cell in badge.cells for d in cell.differs):
        console.log(f"another environment than the entry's: {difference}")
    if badge.not_verified:
        console.log(f"not verified: {', '.join(badge.not_verified)}")


def row(cell: CellCheck) -> tuple[str, ...]:
    counts = (len(cell.drawn), cell.episodes, cell.outcomes, cell.flipped, cell.allowed)
    return (cell.cell, *map(str, counts), cell.verdict)


def refuse_failed(entry: str, badge: Badge) -> None:
    """Raises ValidationFailed naming what differs."""
    from fsbench.core.errors import ValidationFailed

    bad = [cell for cell in badge.cells if cell.verdict == "failed"]
    if bad:
        listed = "\n  ".join(
            f"{c.cell}: {c.flipped} of {c.outcomes} outcomes differ, allowed are {c.allowed}"
            f"{'; ' + c.other if c.other else ''}; episodes {', '.join(map(str, c.wrong))}"
            for c in bad
        )
        raise ValidationFailed(
            f"'{entry}' is not what its weights give\n  {listed}",
            fix="ask the submitter; the badge says how to run the same check again",
        )
