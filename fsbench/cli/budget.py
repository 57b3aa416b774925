"""`fsbench budget`: accuracy of methods against the training steps per round."""

from __future__ import annotations

from pathlib import Path

from typer import Option

from fsbench.cli import console, options
from fsbench.cli.pretrain import RecipeName, Scenario, Set, Source


def budget(
    recipe: RecipeName,
    steps: list[str] = Option(..., help="Optimizer steps per round: 50,100,200; repeatable."),
    method: list[str] | None = Option(
        None, help="Methods beside the control `normal`: welsr,lw; repeatable."
    ),
    seeds: int = Option(1, min=1, help="Runs per budget, one seed each."),
    source: Source = None,
    data: options.Data = None,
    assignments: Set = None,
    scenario: Scenario = None,
    output: Path = Option(
        Path("runs/budget"),
        "-o",
        "--output",
        help="Folder for the runs, budget.json and the figure.",
    ),
    device: options.Device = "auto",
    threads: options.Threads = None,
    cache: options.Cache = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Train methods and their control at several steps per round; resume what was stopped."""
    from fsbench.api.budget import accuracies_by_steps, compare_budgets, format_accuracies
    from fsbench.api.machine import Machine, cache_folder
    from fsbench.api.pretrain import resolve_recipe
    from fsbench.core.tasks import integers

    settings = [*(assignments or []), *([f"source={source}"] if source else [])]
    runs = compare_budgets(
        resolve_recipe(recipe, settings=settings, scenario=scenario),
        options.split(method),
        integers(steps, "--steps"),
        seeds=seeds,
        roots=options.split(data),
        output=output,
        machine=Machine(device=device, threads=threads, cache=cache_folder(cache)),
        yes=yes,
        report=console.reporter(),
    )
    if as_json:
        console.emit_json([run.model_dump(mode="json") for run in runs])
        return
    columns = sorted({run.steps for run in runs})
    rows = [
        [name, *(format_accuracies(accuracies[n]) for n in columns)]
        for name, accuracies in accuracies_by_steps(runs).items()
    ]
    title = "validation accuracy (%) by steps per round"
    console.table(title, ("method", *map(str, columns)), rows)
