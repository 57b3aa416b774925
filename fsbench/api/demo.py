"""A demonstration on generated images: pretrain, evaluate, submit and rank, without a download."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from fsbench.api.evaluate import evaluate
from fsbench.api.leaderboard import RankedBoard
from fsbench.api.pretrain import name_run, pretrain
from fsbench.api.submit import submit
from fsbench.core.progress import VERBOSITY, Reporter
from fsbench.core.schema import Declaration
from leaderboard.site.page import build_site
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe

DEFAULT = ("normal", "lw")
ALL = "all"
BASE = "toy/normal"
TASKS, SHOTS = ("toy",), (1, 5)
SITE = "site"
"""Folder of the board's page."""
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

    Everything is written below `output`, where a stopped demo resumes; SITE is the board's page.
    methods: names, or `all`. Raise UnknownName and UsageError before any work.
    """
    recipes = demo_recipes(methods)
    cache, results, board = output / "cache", output / "results", output / "board"
    train = partial(pretrain, threads=threads, cache=cache, yes=True, progress=report)
    details = report if VERBOSITY.get() > 0 else False
    test = partial(evaluate, threads=threads, cache=cache, shots=SHOTS, progress=details)
    report.log(f"random weights, {len(recipes)} runs: each is evaluated in about 20 s")
    first = f"fsbench/{registry.load_recipe(BASE).architecture}"
    test(first, TASKS, random_init=0, output=results)
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        report.log(f"run {number} of {len(recipes)}: {name}")
        run = train(recipe, name=name, output=output / "runs")
        test(run.ref, TASKS, output=results)
    submit(results, board, declaration=DECLARATION, replace=True)
    build_site(board, output / SITE)
    return board


def describe_demo(ranked: RankedBoard) -> list[str]:
    """Return what the demo shows, in three sentences."""
    overall = {e["name"]: 100 * e["overall"] for e in ranked.to_json()[0]["entries"]}
    best, last = max(overall, key=overall.__getitem__), min(overall.values())
    return [
        f"{len(overall)} backbones, one of them with random weights, classified images of data sets"
        " that none was trained on, from 1 and 5 images a class.",
        f"{best} was right in {overall[best]:.0f} % of the queries, the last row in {last:.0f} %; a"
        " guess is right in 20 %.",
        "Every row is one pretraining seed: training is chaotic, so other machines give numbers"
        " several points apart.",
    ]


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
        recipes |= {name_run(r): r for r in (registry.control_recipe(recipe), recipe)}
    return recipes
