"""`fsbench pretrain`: pretrain a backbone by a recipe."""

from pathlib import Path

from typer import Argument, Option

from fsbench.cli import console, options


def pretrain(
    recipe: str = Argument(
        ...,
        metavar="RECIPE",
        help="Recipe of `fsbench ls recipes` (toy/seal), or a recipe file (.json).",
    ),
    source: str | None = Option(
        None,
        help="Source data set: tinyimagenet, pets, caltech101, toy_source, folder:DIR or "
        "hf-hub:ORG/NAME.",
    ),
    data: options.Data = None,
    assignments: list[str] | None = Option(
        None, "--set", help="Recipe field as FIELD=VALUE (plan.rounds=3); repeatable."
    ),
    scenario: str | None = Option(
        None, help="How data arrive: stationary, warm-start, continual-full or continual-limited."
    ),
    method: str | None = Option(
        None,
        help="Methods in place of the recipe's: swr+weight_compander, or py:FILE:CLASS (your own).",
    ),
    seed: int | None = Option(None, min=0, help="Seed of the recipe."),
    output: Path = Option(
        Path("runs"), "-o", "--output", help="Folder of the runs; each gets its own inside."
    ),
    device: options.Device = "auto",
    threads: options.Threads = None,
    cache: options.Cache = None,
    export_recipe: Path | None = Option(
        None, help="Write the recipe to this file (.json) and do not train."
    ),
    yes: options.Yes = False,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Pretrain a backbone by a recipe, or resume a stopped run; run:FOLDER is its reference.

    With several processes: torchrun --nproc-per-node N -m fsbench pretrain ...
    """
    from fsbench.api.pretrain import pretrain as run_pretraining
    from fsbench.api.pretrain import resolve_recipe, write_recipe
    from fsbench.core.distributed import is_first_process

    flags = [f"source={source}"] if source else []
    flags += [f"seed={seed}"] if seed is not None else []
    settings = [*(assignments or []), *flags]
    if export_recipe is not None:
        built = resolve_recipe(recipe, settings=settings, method=method, scenario=scenario)
        write_recipe(built, export_recipe)
        console.log(f"wrote {export_recipe}")
        return
    run = run_pretraining(
        recipe,
        data=options.split(data, "data"),
        settings=settings,
        method=method,
        scenario=scenario,
        output=output,
        device=device,
        threads=threads,
        cache=cache,
        yes=yes,
    )
    if not is_first_process():
        return
    if as_json:
        console.emit_json({**run.record, "folder": str(run.folder)})
        return
    plan, tasks, measure = run.recipe.plan, run.record.get("episodic_tasks"), "val accuracy %"
    if run.record["source_accuracy"] is None and tasks:
        measure = f"{tasks['way']}-way {tasks['shots']}-shot accuracy %"
    row = {
        "recipe": run.recipe.name,
        "source": str(run.record["source"]),
        "rounds x epochs": f"{plan.total_rounds} x {plan.epochs}",
        "steps": str(run.steps),
        measure: f"{100 * run.accuracy:.2f}",
        **({} if run.test_accuracy is None else {"test %": f"{100 * run.test_accuracy:.2f}"}),
        "weights": run.weights_hash[:12],
        "run": run.ref,
    }
    if len(run.stage_accuracies) > 1 and run.record["source_accuracy"] is not None:
        row["by stage %"] = " ".join(f"{100 * a:.1f}" for a in run.stage_accuracies)
    console.table("pretrained", list(row), [list(row.values())])
    console.log(f"saved to {run.folder}/; next: fsbench benchmark -m {run.ref}")
