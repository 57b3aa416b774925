"""`fsbench pretrain`: train a backbone by a recipe, or go on where a killed run stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsbench.cli import options

if TYPE_CHECKING:
    from fsbench.core.progress import Reporter
    from fsbench.data import SourceDataset
    from pretrain.recipes.recipe import Recipe

RecipeName = Annotated[str, typer.Argument(help="A recipe of `fsbench ls recipes`: toy/seal.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        help="tinyimagenet, pets, caltech101, toy_source, folder:DIR or hf-hub:ORG/NAME.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="field=value of the recipe, repeatable: plan.rounds=3."),
]
Methods = Annotated[
    str | None,
    typer.Option("--method", help="Methods in place of the recipe's own: swr+weight_compander."),
]
Scenario = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        help="stationary, warm-start, continual-full or continual-limited: how data come.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the recipe.")]
Runs = Annotated[
    Path, typer.Option("-o", "--output", help="Folder of the runs; each has its own inside.")
]
HOUR = 3600.0


def register(app: typer.Typer) -> None:
    app.command("pretrain")(pretrain)


def pretrain(
    recipe: RecipeName,
    source: Source = None,
    data: options.Data = None,
    assignments: Set = None,
    scenario: Scenario = None,
    method: Methods = None,
    seed: Seed = None,
    output: Runs = Path("runs"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    cache: options.Cache = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Pretrain a backbone; the finished run is the reference run:FOLDER.

    With several processes: torchrun --nproc-per-node N -m fsbench pretrain ...
    """
    from fsbench.api.machine import Machine, cache_folder
    from fsbench.cli.console import reporter
    from fsbench.core.distributed import speaks
    from fsbench.core.progress import SILENT
    from fsbench.data import DataRoots, load_source
    from pretrain.training.loop import pretrain as train

    given = [f"source={source}"] if source else []
    given += [f"seed={seed}"] if seed is not None else []
    chosen = choose(recipe, [*(assignments or []), *given], scenario, method)
    machine = Machine(device=device, threads=threads, cache=cache_folder(cache))
    clock, report = machine.start(), reporter() if speaks() else SILENT
    roots = DataRoots.parse(options.split(data))
    images = load_source(chosen.source, roots, machine.cache, chosen.input_size, report)
    folder = output / (f"{chosen.label}-{scenario}" if scenario else chosen.label)
    if speaks():
        announce(chosen, images, folder, clock.device, yes, report)
    train(chosen, images, folder, device=clock.device, report=report)
    if speaks():
        show(folder, as_json)


def choose(
    name: str, assignments: list[str], scenario: str | None = None, methods: str | None = None
) -> Recipe:
    """The recipe, with these methods if given, and its overrides, which win over the scenario's.

    Raises UsageError for a field that is set twice.
    """
    from fsbench.core.errors import UsageError
    from pretrain.recipes import registry, scenarios
    from pretrain.recipes.recipe import parse

    fields = [text.partition("=")[0].strip() for text in assignments]
    twice = sorted({field for field in fields if fields.count(field) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)} is set twice", fix="set every field once")
    fixed = scenarios.fields(scenario) if scenario else {}
    values = {**fixed, **parse(assignments)}
    recipe = registry.get(name)
    return registry.composed(recipe, methods, values) if methods else recipe.replace(values)


def announce(
    recipe: Recipe, images: SourceDataset, folder: Path, device: str, yes: bool, report: Reporter
) -> None:
    """Say what the run will cost. Raises UsageError above an hour unless `yes`."""
    from fsbench.core.errors import UsageError
    from pretrain.training.estimate import estimate
    from pretrain.training.run_folder import finished

    if finished(folder):
        report.log(f"{folder} is finished already")
        return
    text = f"{recipe.name} on {images.name}: {(cost := estimate(recipe, images, device))}"
    if cost.seconds > HOUR and not yes:
        raise UsageError(
            text, fix="give --yes to start it, or --set plan.epochs=N for a shorter run"
        )
    report.log(text)


def show(folder: Path, as_json: bool) -> None:
    """One row about the finished run."""
    import json

    from fsbench.cli.console import emit_json, table

    run = json.loads((folder / "run.json").read_text(encoding="utf8"))
    if as_json:
        emit_json({**run, "folder": str(folder)})
        return
    plan = run["recipe_fields"]["plan"]
    row = {
        "recipe": run["recipe"],
        "source": run["source"],
        "rounds x epochs": f"{plan['rounds'] * len(plan['stages'])} x {plan['epochs']}",
        "steps": str(run["steps"]),
        **accuracy(run),
        "weights": run["weights_hash"][:12],
        "run": f"run:{folder}",
    }
    if len(run["stage_accuracies"]) > 1 and run["source_accuracy"] is not None:
        row["by stage %"] = " ".join(f"{100 * a:.1f}" for a in run["stage_accuracies"])
    table("pretrained", list(row), [list(row.values())])


def accuracy(run: dict[str, Any]) -> dict[str, str]:
    """The run's own accuracy under the name of what it is; a meta-learner answers tasks."""
    if run["source_accuracy"] is not None:
        return {"val accuracy %": f"{100 * run['source_accuracy']:.2f}"}
    tasks = run["episodic_tasks"]
    name = f"{tasks['way']}-way {tasks['shots']}-shot accuracy %"
    return {name: f"{100 * run['episodic_accuracy']:.2f}"}
