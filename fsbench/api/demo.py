"""A demonstration on generated images: pretrain, evaluate, submit and rank, without a download."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from fsbench.api.evaluate import evaluate
from fsbench.api.pretrain import label, pretrain
from fsbench.api.submit import submit
from fsbench.core.progress import Reporter
from fsbench.core.schema import Declaration
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe

DEFAULT = ("normal", "lw")
ALL = "all"
BASE = "toy/normal"
TASKS, SHOTS = ("toy",), (1, 5)
DECLARATION = Declaration(
    name="demo",
    authors="fsbench demo",
    link="fsbench demo",
    license="Apache-2.0",
    pretraining_data=("toy_source",),
    targets_seen=(),
    statement="Made by `fsbench demo` on generated images.",
)


def run_demo(
    output: Path, threads: int | None, report: Reporter, methods: Iterable[str] = DEFAULT
) -> Path:
    """Pretrain methods with their controls, evaluate and submit them; return the board's folder.

    Everything is written below `output`, where a stopped demo resumes. methods: names, or `all`.
    Raise UnknownName and UsageError before any work.
    """
    recipes = demo_recipes(methods)
    cache, results, board = output / "cache", output / "results", output / "board"
    train = partial(pretrain, threads=threads, cache=cache, yes=True, progress=report)
    test = partial(evaluate, threads=threads, cache=cache, shots=SHOTS, progress=report)
    first = f"fsbench/{registry.load_recipe(BASE).architecture}"
    test(first, TASKS, random_init=0, output=results)
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        report.log(f"run {number} of {len(recipes)}: {name}")
        run = train(recipe, name=name, output=output / "runs")
        test(run.ref, TASKS, output=results)
    submit(results, board, declaration=DECLARATION, replace=True)
    return board


def demo_recipes(methods: Iterable[str]) -> dict[str, Recipe]:
    """Return the recipes by the name of their run: methods, each after its control.

    Raise UnknownName, and UsageError if a package that a method needs is missing.
    """
    names = tuple(methods)
    recipes: dict[str, Recipe] = {}
    for name in METHODS.names() if ALL in names else names:
        METHODS.load(name)
        recipe = registry.load_recipe(f"toy/{name}")
        recipe.require_installed()
        recipes |= {label(r): r for r in (registry.control_recipe(recipe), recipe)}
    return recipes
