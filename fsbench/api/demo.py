"""The main job on generated images: pretrain, freeze, evaluate, submit, rank. No download."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fsbench.api.evaluate import run_request
from fsbench.api.labels import label
from fsbench.api.machine import Machine
from fsbench.api.request import EvaluationRequest, Models, parse_tasks
from fsbench.core.progress import Reporter
from fsbench.core.schema import Declaration
from fsbench.core.tasks import Options
from fsbench.data import DataRoots, load_source
from leaderboard.submission import intake
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import train_recipe

DEFAULT = ("normal", "seal")
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
    """Everything below `output`; returns the board's folder. Run again, it goes on or reads.

    methods: names, or `all`; each is joined by its control. Raises UnknownName, UsageError before
    any work.
    """
    chosen = runs(methods)
    machine = Machine(threads=threads, cache=output / "cache")
    device = machine.start().device
    request = EvaluationRequest(parse_tasks(TASKS, Options(shots=SHOTS)), input_size=None)
    results = output / "results"
    random = Models((f"fsbench/{registry.load_recipe(BASE).architecture}",), random_init=0)
    run_request(random, request, output=results, machine=machine, report=report)
    for number, (name, recipe) in enumerate(chosen.items(), start=1):
        report.log(f"run {number} of {len(chosen)}: {name}")
        run = train(recipe, output / "runs" / name, machine, device, report)
        run_request(
            Models((f"run:{run}",)), request, output=results, machine=machine, report=report
        )
    board = output / "board"
    intake.submit_results(results, board, DECLARATION, replace=True)
    return board


def runs(methods: Iterable[str]) -> dict[str, Recipe]:
    """Label -> recipe of every run: the methods, each after its control.

    Raises UnknownName, and UsageError where the package of a method is missing.
    """
    names = tuple(methods)
    found: dict[str, Recipe] = {}
    for name in METHODS.names() if ALL in names else names:
        METHODS.load(name)
        recipe = registry.load_recipe(f"toy/{name}")
        recipe.require_installed()
        found |= {label(each): each for each in (registry.control_recipe(recipe), recipe)}
    return found


def train(recipe: Recipe, out: Path, machine: Machine, device: str, report: Reporter) -> Path:
    source = load_source(
        recipe.source, DataRoots.parse([]), machine.cache, recipe.input_size, report
    )
    return train_recipe(recipe, source, out, device=device, report=report)
