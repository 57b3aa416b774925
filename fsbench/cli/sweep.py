"""`fsbench sweep`: run many pretraining runs and evaluations that one file describes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option

from fsbench.api.options import SweepOptions
from fsbench.cli import console, options
from fsbench.core.errors import FsbenchError
from fsbench.core.progress import WorkEstimate, format_count, format_duration, require_consent

if TYPE_CHECKING:
    from fsbench.sweep.graph import SweepPlan


@options.command("sweep", SweepOptions, without=("batch_size", "features_device"))
def sweep(
    chosen: SweepOptions,
    file: Path = Argument(..., metavar="FILE", help="Sweep file (YAML)."),
    dry_run: bool = Option(
        False,
        "--dry-run",
        help="Print the jobs, which of them are done and the time of the others only.",
        rich_help_panel="Output",
    ),
    as_json: options.Json = False,
) -> None:
    """Run a sweep file: pretrain, evaluate, analyze and submit whatever is missing.

    A stopped sweep resumes. Exit code 1: a job failed.
    """
    from fsbench.sweep.costs import estimate_costs
    from fsbench.sweep.file import read_sweep_file
    from fsbench.sweep.schedule import plan_sweep

    sweep_file = read_sweep_file(file)
    chosen = chosen.resolve(sweep_file.threads)
    if chosen.board is None and sweep_file.submit:
        chosen = replace(chosen, board=chosen.output / "board")
    plan = plan_sweep(sweep_file, chosen, console.reporter())
    if plan.missing:
        plan = estimate_costs(plan, chosen)
    if dry_run:
        show_jobs(plan, as_json)
    else:
        run(plan, chosen)


def run(plan: "SweepPlan", place: SweepOptions) -> None:
    """Run the missing jobs. Raise FsbenchError with the reasons if some failed."""
    from fsbench.sweep.schedule import run_sweep

    jobs = format_count(len(plan.jobs), "job")
    who = f"{len(plan.missing)} of {jobs} to do"
    if plan.seconds:
        work = WorkEstimate(f"{place.jobs} at once", plan.wall_seconds(place.jobs))
        require_consent(who, [work], place.yes, console.log, "use --dry-run to see every job")
    elif plan.missing:
        console.log(f"{who} on {place.engine}")
    failed = run_sweep(plan, place, console.reporter())
    if failed:
        listed = "\n  ".join(f"{title}: {reason}" for title, reason in failed.items())
        raise FsbenchError(
            f"{len(failed)} of {jobs} failed\n  {listed}",
            fix="fix the cause and run the command again: finished jobs are not repeated",
        )
    console.log(f"{jobs} done: {place.output}")


def show_jobs(plan: "SweepPlan", as_json: bool) -> None:
    """Print every job with its state, and the estimated time of those that are missing."""
    records = [
        {
            "kind": job.KIND,
            "job": job.title,
            "state": plan.done.get(key, "missing"),
            "seconds": plan.seconds.get(key),
        }
        for key, job in plan.jobs.items()
    ]
    console.emit(as_json, records, "sweep")
    left = format_duration(sum(plan.seconds.values()))
    about = f": about {left} one after the other" if plan.seconds else ""
    console.log(f"{format_count(len(plan.missing), 'job')} of {len(records)} to do{about}")
