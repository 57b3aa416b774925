"""Accuracy against steps per round: the compute budgets of "The Impact of Reinitialization", 3.3.

Its Figure 3 plots every reinitialization method over the number of training steps a round, and the
baseline over the same total number of steps. Here the baseline is `normal` under the same Plan;
with `schedule=single_cycle` the learning rate of all restarts at no round.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING

from fsbench.core.errors import UsageError
from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen

if TYPE_CHECKING:
    from fsbench.data import SourceDataset
    from pretrain.recipes.recipe import Recipe

CONTROL = "normal"
HOUR = 3600.0


class BudgetRun(Frozen):
    """One finished run of a sweep. steps: a round; accuracy: of validation, a fraction."""

    method: str
    steps: int
    seed: int
    accuracy: float
    total_steps: int
    flops: int
    folder: str


Budgets = dict[tuple[str, int, int], "Recipe"]
"""Recipes by method, steps a round and seed."""


def plan_budgets(
    recipe: Recipe, methods: Iterable[str], steps: Iterable[int], seeds: int
) -> Budgets:
    """The recipes of a sweep, the control's first; seeds: from the recipe's own on.

    Raises UsageError for no steps, and where a recipe does, before anything runs.
    """
    from pretrain.recipes.registry import compose_methods

    names, budgets = dict.fromkeys((CONTROL, *methods)), sorted(set(steps))
    if not budgets or budgets[0] < 1:
        raise UsageError("a sweep needs numbers of steps", fix="give --steps 50,100,200")
    return {
        (name, n, seed): compose_methods(recipe, name, {"plan.round_steps": n, "seed": seed})
        for n in budgets
        for name in names
        for seed in range(recipe.seed, recipe.seed + seeds)
    }


def run_folder(recipe: Recipe, output: Path) -> Path:
    """Where a recipe of a sweep has its run."""
    return output / f"{recipe.label}-{recipe.plan.round_steps}steps"


def remaining_seconds(budgets: Budgets, source: SourceDataset, output: Path, device: str) -> float:
    """What is left to do, by a few timed steps of plain training."""
    from pretrain.training.cost import estimate_training
    from pretrain.training.run_folder import is_finished

    open_ = [recipe for recipe in budgets.values() if not is_finished(run_folder(recipe, output))]
    if not open_:
        return 0.0
    cost = estimate_training(open_[0], source, device)
    steps = sum(r.plan.total_rounds * (r.plan.round_steps or 0) for r in open_)
    return cost.seconds / cost.steps * steps


def run_budgets(
    budgets: Budgets,
    source: SourceDataset,
    output: Path,
    *,
    device: str = "cpu",
    report: Reporter = SILENT,
) -> list[BudgetRun]:
    """Train all, each in a folder of its own in `output`; finished ones are read, others resume.

    The smallest budget comes first: UsageError, where it has fewer steps than epochs, is at once.
    """
    from pretrain.training.loop import train_recipe

    found = []
    for (method, steps, seed), recipe in budgets.items():
        folder = run_folder(recipe, output)
        train_recipe(recipe, source, folder, device=device, report=report)
        facts = json.loads((folder / "run.json").read_text(encoding="utf8"))
        found.append(
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
    return found


def accuracies_by_steps(runs: Sequence[BudgetRun]) -> dict[str, dict[int, list[float]]]:
    """Accuracies by method and steps a round, seeds in order."""
    found: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        found.setdefault(run.method, {}).setdefault(run.steps, []).append(run.accuracy)
    return found


def format_accuracies(accuracies: Sequence[float]) -> str:
    """Mean in %, with the standard deviation over seeds where there are several."""
    spread = f" ± {100 * stdev(accuracies):.1f}" if len(accuracies) > 1 else ""
    return f"{100 * mean(accuracies):.1f}{spread}"


def budget_panel(runs: Sequence[BudgetRun], title: str) -> Panel:
    """The picture of a sweep."""
    curves = tuple(
        Curve(label=method, x=tuple(row), y=tuple(100 * mean(a) for a in row.values()))
        for method, row in accuracies_by_steps(runs).items()
    )
    return Panel(title=title, x="steps a round", y="validation accuracy (%)", curves=curves)
