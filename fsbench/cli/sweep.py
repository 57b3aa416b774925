"""`fsbench sweep`: run many pretraining runs and evaluations that one file describes."""

from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option

from fsbench.cli import console, options
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.progress import format_duration

if TYPE_CHECKING:
    from fsbench.sweep.graph import SweepPlan
    from fsbench.sweep.job import Workplace


def sweep(
    what: str = Argument(..., metavar="FILE | status FILE", help="Sweep file (YAML)."),
    file: Path | None = Argument(None, hidden=True),
    output: Path = Option(
        Path("sweep"), "-o", "--output", help="Folder of runs, results and the state of jobs."
    ),
    board: Path | None = Option(
        None, help="Folder of the board that `submit` adds to; its entries count as done."
    ),
    findings: Path | None = Option(
        None, help="Folder of analyses; existing records count as done."
    ),
    data: options.Data = None,
    cache: options.Cache = None,
    jobs: int = Option(
        1, "-j", "--jobs", min=1, help="Parallel processes; they share the GPUs evenly."
    ),
    device: options.Device = "auto",
    threads: options.Threads = None,
    workers: int = Option(2, min=0, max=1024, help="Threads for decoding images."),
    dry_run: bool = Option(False, "--dry-run", help="Print the jobs and their cost only."),
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Run a sweep file: pretrain, evaluate, analyze and submit whatever is missing.

    A stopped sweep resumes. `sweep status FILE` lists jobs that are done, running or failed, and
    why. Exit code 1: a job failed.
    """
    from fsbench.core.io import cache_folder
    from fsbench.sweep.file import read_sweep_file
    from fsbench.sweep.job import Workplace, absolute_roots
    from fsbench.sweep.schedule import plan_sweep

    sweep_file = read_sweep_file(parse_file(what, file))
    if board is None and sweep_file.submit:
        board = output / "board"
    place = Workplace(
        output=output.absolute(),
        cache=cache_folder(cache).absolute(),
        roots=absolute_roots(options.split(data, "data")),
        board=board.absolute() if board else None,
        findings=findings.absolute() if findings else None,
        device=device,
        threads=threads or sweep_file.threads,
        workers=workers,
    )
    plan = plan_sweep(sweep_file, place, console.reporter())
    if file is not None:
        show_status(plan, place, as_json)
    elif dry_run:
        show_plan(plan, place, as_json)
    else:
        run(plan, place, jobs, yes)


def parse_file(what: str, file: Path | None) -> Path:
    """Return the sweep file. Raise UsageError for a word before it that is not `status`."""
    if (file is None) == (what == "status"):
        raise UsageError(f"sweep {what} {file or ''}".strip(), fix="fsbench sweep [status] FILE")
    return file or console.expand_paths(Path(what))


def run(plan: "SweepPlan", place: "Workplace", jobs: int, yes: bool) -> None:
    """Run the missing jobs. Raise FsbenchError with the reasons if some failed."""
    from fsbench.sweep import costs
    from fsbench.sweep.schedule import run_sweep

    if plan.missing:
        plan = costs.announce_cost(plan, place, jobs, yes, console.log)
    failed = run_sweep(plan, place, jobs, console.reporter())
    if failed:
        listed = "\n  ".join(f"{title}: {reason}" for title, reason in failed.items())
        raise FsbenchError(
            f"{len(failed)} of {len(plan.graph.jobs)} jobs failed\n  {listed}",
            fix="fix the cause and run the command again: finished jobs are not repeated",
        )
    console.log(f"all {len(plan.graph.jobs)} jobs are done: {place.output}")


def show_plan(plan: "SweepPlan", place: "Workplace", as_json: bool) -> None:
    """Print every job with its state and what it will cost."""
    from fsbench.sweep import costs

    rows = costs.estimate_jobs(plan, place)
    shown = [
        (r.kind, r.title, r.state, costs.format_flops(r.flops), format_time(r.seconds or None))
        for r in rows
    ]
    columns = ("kind", "job", "state", "FLOPs", "time")
    console.emit(as_json, [row._asdict() for row in rows], "plan", columns, shown)
    console.log(costs.summarize_costs(rows))


def show_status(plan: "SweepPlan", place: "Workplace", as_json: bool) -> None:
    """Print every job with its state and the reason of a failure, then rate and time left."""
    from fsbench.sweep import status as progress

    rows = progress.list_status(plan, place)
    records = [row.model_dump(mode="json") | {"key": row.key[:16]} for row in rows]
    shown = [(r.kind, r.title, r.state, format_time(r.seconds), r.reason) for r in rows]
    console.emit(as_json, records, "sweep", ("kind", "job", "state", "time", "reason"), shown)
    console.log(progress.summarize_status(rows))


def format_time(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds)
