"""Accuracy against steps per round: the compute budgets of "The Impact of Reinitialization", 3.3.

Figure 3 of the paper plots every reinitialization method over the number of training steps per
round, and the baseline over the same total number of steps. Here the baseline is `normal` under the
same plan; with `schedule=single_cycle` the learning rate does not restart at any round.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev

from fsbench.api.machine import Machine
from fsbench.core.errors import UsageError
from fsbench.core.io import write_atomic
from fsbench.core.panels import Curve, Panel, draw_panels
from fsbench.core.plotting import write_figure
from fsbench.core.progress import SILENT, Reporter, WorkEstimate, require_consent
from fsbench.core.specs import Frozen
from fsbench.data import DataRoots, SourceDataset, load_source
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import compose_methods, load_code
from pretrain.training.cost import estimate_training
from pretrain.training.loop import train_recipe
from pretrain.training.run_folder import is_finished

CONTROL = "normal"
RECORD, PICTURE = "budget.json", "budget.png"


class BudgetRun(Frozen):
    """One finished run. steps: of a round; accuracy: on the validation images, a fraction."""

    method: str
    steps: int
    seed: int
    accuracy: float
    total_steps: int
    flops: int
    folder: str


Budgets = dict[tuple[str, int, int], Recipe]
"""Recipes by method, steps per round and seed."""


def compare_budgets(
    recipe: Recipe,
    methods: Sequence[str],
    steps: Iterable[int],
    *,
    seeds: int = 1,
    roots: Sequence[str] = (),
    output: Path = Path("runs/budget"),
    machine: Machine | None = None,
    yes: bool = False,
    report: Reporter = SILENT,
) -> list[BudgetRun]:
    """Train methods and the control at several steps per round; write a record and a figure.

    methods: in place of the recipe's own; seeds: runs of every budget. Finished runs in `output`
    are read, others are resumed. Raises UsageError, also for over an hour of work without `yes`.
    """
    names = methods or [method.name for method in recipe.methods]
    budgets = plan_budgets(recipe, names, steps, seeds)
    machine = machine or Machine()
    device = machine.start().device
    size, subset, data = recipe.decoded_size, recipe.source_subset, DataRoots.parse(roots)
    source = load_source(recipe.source, data, machine.cache, size, report, subset)
    work = WorkEstimate("training", remaining_seconds(budgets, source, output, device))
    who = f"{len(budgets)} runs of {recipe.name}"
    require_consent(who, [work], yes, report.log, "choose fewer --steps, --method or --seeds")
    runs = run_budgets(budgets, source, output, device, report)
    rows = [run.model_dump(mode="json") for run in runs]
    write_atomic(output / RECORD, json.dumps(rows, indent=1).encode())
    panel = budget_panel(runs, f"{recipe.name} on {source.name}")
    write_figure(draw_panels([panel], ""), output / PICTURE)
    return runs


def plan_budgets(
    recipe: Recipe, methods: Iterable[str], steps: Iterable[int], seeds: int
) -> Budgets:
    """Return the recipes of all budgets, the control's first; seeds count from the recipe's.

    Raises UsageError for no steps, and for steps that a recipe refuses.
    """
    names = dict.fromkeys((CONTROL, *map(load_code, methods)))
    budgets = sorted(set(steps))
    if not budgets or budgets[0] < 1:
        raise UsageError("no steps per round", fix="choose them, e.g. --steps 50,100,200")
    return {
        (name, n, seed): compose_methods(recipe, name, {"plan.round_steps": n, "seed": seed})
        for n in budgets
        for name in names
        for seed in range(recipe.seed, recipe.seed + seeds)
    }


def run_folder(recipe: Recipe, output: Path) -> Path:
    return output / f"{recipe.label}-{recipe.plan.round_steps}steps"


def remaining_seconds(budgets: Budgets, source: SourceDataset, output: Path, device: str) -> float:
    """Return how long the unfinished runs will take, from a few timed steps of plain training."""
    left = [recipe for recipe in budgets.values() if not is_finished(run_folder(recipe, output))]
    if not left:
        return 0.0
    cost = estimate_training(left[0], source, device)
    steps = sum(r.plan.total_rounds * (r.plan.round_steps or 0) for r in left)
    return cost.seconds / cost.steps * steps


def run_budgets(
    budgets: Budgets, source: SourceDataset, output: Path, device: str, report: Reporter
) -> list[BudgetRun]:
    """Train all budgets, each in its own folder below `output`; finished ones are read.

    The smallest comes first: if it has fewer steps than epochs, UsageError is raised at once.
    """
    runs = []
    for (method, steps, seed), recipe in budgets.items():
        folder = run_folder(recipe, output)
        train_recipe(recipe, source, folder, device=device, report=report)
        facts = json.loads((folder / "run.json").read_text(encoding="utf8"))
        runs.append(
            BudgetRun(
                method=method,
                steps=steps,
                seed=seed,
                accuracy=facts["source_accuracy"],
                total_steps=facts["steps"],
                flops=facts["flops"],
                folder=str(folder),
            )
        )
    return runs


def accuracies_by_steps(runs: Sequence[BudgetRun]) -> dict[str, dict[int, list[float]]]:
    """Return the accuracies by method and steps per round, seeds in order."""
    accuracies: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        accuracies.setdefault(run.method, {}).setdefault(run.steps, []).append(run.accuracy)
    return accuracies


def format_accuracies(accuracies: Sequence[float]) -> str:
    """Return the mean in percent, with the standard deviation if there are several seeds."""
    spread = f" ± {100 * stdev(accuracies):.1f}" if len(accuracies) > 1 else ""
    return f"{100 * mean(accuracies):.1f}{spread}"


def budget_panel(runs: Sequence[BudgetRun], title: str) -> Panel:
    """Return the figure: accuracy over steps per round, one curve per method."""
    curves = tuple(
        Curve(label=method, x=tuple(row), y=tuple(100 * mean(a) for a in row.values()))
        for method, row in accuracies_by_steps(runs).items()
    )
    return Panel(title=title, x="steps per round", y="validation accuracy (%)", curves=curves)
