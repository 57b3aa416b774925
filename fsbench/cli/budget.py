"""`fsbench budget`: accuracy of methods against the training steps that a round has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options
from fsbench.cli.pretrain import RecipeName, Scenario, Set, Source

if TYPE_CHECKING:
    from fsbench.api.budget import BudgetRun

Steps = Annotated[
    list[str], typer.Option("--steps", help="Optimizer steps a round: 50,100,200; repeatable.")
]
Methods = Annotated[
    list[str] | None,
    typer.Option("--method", help="Methods beside the control `normal`: welsr,lw; repeatable."),
]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="Runs of every budget.")]
Output = Annotated[
    Path, typer.Option("-o", "--output", help="Folder of the runs, budget.json and the picture.")
]
RECORD, PICTURE = "budget.json", "budget.png"


def register(app: typer.Typer) -> None:
    app.command("budget")(budget)


def budget(
    recipe: RecipeName,
    steps: Steps,
    method: Methods = None,
    seeds: Seeds = 1,
    source: Source = None,
    data: options.Data = None,
    assignments: Set = None,
    scenario: Scenario = None,
    output: Output = Path("runs/budget"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    cache: options.Cache = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Train methods and the control at several steps a round; a killed sweep goes on."""
    from fsbench.api import budget as api
    from fsbench.api.machine import Machine, cache_folder
    from fsbench.api.pretrain import build_recipe
    from fsbench.core.errors import UsageError
    from fsbench.data import DataRoots, load_source

    given = [f"source={source}"] if source else []
    base = build_recipe(recipe, settings=[*(assignments or []), *given], scenario=scenario)
    own = [found.name for found in base.methods]
    named = options.split(method) or own
    planned = api.plan_budgets(base, named, numbers(steps), seeds)
    machine = Machine(device=device, threads=threads, cache=cache_folder(cache))
    clock, report = machine.start(), console.reporter()
    roots = DataRoots.parse(options.split(data))
    images = load_source(base.source, roots, machine.cache, base.input_size, report)
    seconds = api.remaining_seconds(planned, images, output, clock.device)
    text = f"{len(planned)} runs of {base.name}, about {seconds / 60:.1f} min left"
    if seconds > api.HOUR and not yes:
        raise UsageError(text, fix="give --yes to start, or fewer --steps, --method or --seeds")
    report.log(text)
    runs = api.run_budgets(planned, images, output, device=clock.device, report=report)
    keep(runs, output, f"{base.name} on {images.name}")
    show(runs, as_json)


def numbers(values: list[str]) -> list[int]:
    """Raises UsageError for anything that is no number of steps."""
    from fsbench.core.errors import UsageError

    texts = options.split(values)
    wrong = [text for text in texts if not text.isdecimal()]
    if wrong:
        raise UsageError(f"--steps {wrong[0]} is no number", fix="give --steps 50,100,200")
    return [int(text) for text in texts]


def keep(runs: list[BudgetRun], output: Path, title: str) -> None:
    """Write the record of all runs and the picture."""
    from fsbench.api.budget import budget_panel
    from fsbench.core.io import write_atomic
    from fsbench.core.panels import draw_panels
    from fsbench.core.plotting import write_figure

    rows = [run.model_dump(mode="json") for run in runs]
    write_atomic(output / RECORD, json.dumps(rows, indent=1).encode())
    write_figure(draw_panels([budget_panel(runs, title)], ""), output / PICTURE)


def show(runs: list[BudgetRun], as_json: bool) -> None:
    """A row a method, a column a budget."""
    from fsbench.api.budget import accuracies_by_steps, format_accuracies

    if as_json:
        console.emit_json([run.model_dump(mode="json") for run in runs])
        return
    found = accuracies_by_steps(runs)
    columns = sorted({run.steps for run in runs})
    rows = [[name, *(format_accuracies(row[n]) for n in columns)] for name, row in found.items()]
    title = "validation accuracy (%) by steps a round"
    console.table(title, ("method", *map(str, columns)), rows)
