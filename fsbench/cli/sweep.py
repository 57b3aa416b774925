"""`fsbench sweep FILE` and `fsbench sweep status FILE`: many runs and evaluations as one graph."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.sweep.file import SweepFile
    from fsbench.sweep.place import Workplace


class Engine(StrEnum):
    LOCAL = "local"
    RAY = "ray"


What = Annotated[str, typer.Argument(metavar="FILE | status FILE", help="A sweep file, in YAML.")]
File = Annotated[Path | None, typer.Argument(hidden=True)]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="Folder of runs, results and what is known of jobs.")
]
Board = Annotated[
    Path | None,
    typer.Option("--board", help="Its entries count as done, `submit` adds to it; OUTPUT/board."),
]
Findings = Annotated[
    Path | None,
    typer.Option("--findings", help="Folder of analyses, whose records count as done."),
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes of the local engine.")]
Kind = Annotated[Engine, typer.Option("--engine", help="Processes here, or a Ray cluster.")]
Address = Annotated[
    str | None, typer.Option("--address", help="Of the Ray cluster: auto, HOST:PORT.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and its cost only.")]


def register(app: typer.Typer) -> None:
    app.command("sweep")(sweep)


def sweep(
    what: What,
    file: File = None,
    output: Output = Path("sweep"),
    board: Board = None,
    findings: Findings = None,
    data: options.Data = None,
    cache: options.Cache = None,
    engine: Kind = Engine.LOCAL,
    jobs: Jobs = 1,
    address: Address = None,
    device: options.Device = "auto",
    workers: options.Workers = 2,
    dry_run: DryRun = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Train and evaluate all that a file asks for and that is not there yet; goes on after a kill.

    `sweep status FILE` says what is done, running and failed, and why. Exit code 1: a job failed.
    """
    from fsbench.core.folders import cache_folder
    from fsbench.sweep.file import read_sweep_file
    from fsbench.sweep.place import Workplace, absolute_roots

    asked = read_sweep_file(named(what, file))
    if board is None and asked.submit:
        board = output / "board"
    place = Workplace(
        output=output.absolute(),
        cache=cache_folder(cache).absolute(),
        roots=absolute_roots(options.split(data)),
        board=board.absolute() if board else None,
        findings=findings.absolute() if findings else None,
        device=device,
        threads=asked.threads,
        workers=workers,
    )
    if file is not None:
        status(asked, place, as_json)
    elif dry_run:
        show_plan(asked, place, as_json)
    else:
        run(asked, place, {"engine": engine.value, "jobs": jobs, "address": address}, yes)


def named(what: str, file: Path | None) -> Path:
    """The file. Raises UsageError for a word in front of it that is not `status`."""
    from fsbench.core.errors import UsageError

    if file is None and what != "status":
        return Path(what)
    if file is None or what != "status":
        raise UsageError(f"sweep {what} {file or ''}".strip(), fix="fsbench sweep [status] FILE")
    return file


def run(asked: SweepFile, place: Workplace, how: dict[str, Any], yes: bool) -> None:
    """Run what is missing; on failures list them and exit with 1."""
    from fsbench.core.errors import FsbenchError
    from fsbench.sweep import costs
    from fsbench.sweep.schedule import EngineOptions, plan_sweep, run_sweep

    plan = plan_sweep(asked, place, console.reporter())
    if plan.missing:
        plan = costs.announce_cost(plan, place, how["jobs"], yes, console.log)
    failed = run_sweep(asked, place, EngineOptions(**how), console.reporter(), plan)
    if failed:
        listed = "\n  ".join(f"{title}: {reason}" for title, reason in failed.items())
        raise FsbenchError(
            f"{len(failed)} of {len(plan.graph.jobs)} jobs failed\n  {listed}",
            fix="mend the cause and run the command again: what is done is not repeated",
        )
    console.log(f"all {len(plan.graph.jobs)} jobs are done: {place.output}")


def show_plan(asked: SweepFile, place: Workplace, as_json: bool) -> None:
    """Every job, why it needs no work or what it will cost."""
    from fsbench.sweep import costs
    from fsbench.sweep.schedule import plan_sweep

    plan = plan_sweep(asked, place, console.reporter())
    rows = costs.estimate_jobs(plan, place)
    if as_json:
        console.emit_json([row._asdict() for row in rows])
        return
    shown = [
        (r.kind, r.title, r.state, costs.format_flops(r.flops), costs.format_cost_time(r.seconds))
        for r in rows
    ]
    console.table("plan", ("kind", "job", "state", "FLOPs", "time"), shown)
    console.log(costs.summarize_costs(rows))


def status(asked: SweepFile, place: Workplace, as_json: bool) -> None:
    """Every job with its state and, where it failed, the reason; then rate and time left."""
    from fsbench.sweep import status as progress
    from fsbench.sweep.schedule import plan_sweep

    plan = plan_sweep(asked, place, console.reporter())
    rows = progress.list_status(plan, place)
    if as_json:
        console.emit_json([row._asdict() for row in rows])
        return
    shown = [(r.kind, r.title, r.state, progress.format_time(r.seconds), r.reason) for r in rows]
    console.table("sweep", ("kind", "job", "state", "time", "reason"), shown)
    console.log(progress.summarize_status(rows))
