"""The main job on generated images: pretrain, freeze, evaluate, submit, rank. No download."""

from __future__ import annotations

from pathlib import Path

from fsbench.api.evaluate import Models, evaluate
from fsbench.api.machine import Machine
from fsbench.api.request import Request, parse_tasks
from fsbench.data import DataRoots, load_source
from fsbench.progress import Reporter
from fsbench.schema import Declaration
from fsbench.tasks import Options
from leaderboard import submission
from pretrain import recipes
from pretrain.loop import pretrain

RECIPES = ("toy/normal", "toy/seal")
DECLARATION = Declaration(
    name="demo",
    authors="fsbench demo",
    link="fsbench demo",
    license="Apache-2.0",
    pretraining_data=("toy_source",),
    targets_seen=(),
    statement="Made by `fsbench demo` on generated images.",
)


def run_demo(output: Path, threads: int | None, report: Reporter) -> Path:
    """Everything below `output`; returns the board's folder. Run again, it goes on or reads."""
    machine = Machine(threads=threads, cache=output / "cache")
    clock = machine.start()
    runs = [train(name, output, machine, clock.device, report) for name in RECIPES]
    control = f"fsbench/{recipes.get(RECIPES[0]).architecture}"
    tasks = parse_tasks(["toy"], Options(shots=(1, 5)))
    request = Request(tasks, input_size=None)
    results = output / "results"
    trained = Models(tuple(f"run:{run}" for run in runs))
    random = Models((control,), random_init=0)
    for models in (trained, random):
        evaluate(models, request, output=results, machine=machine, report=report)
    board = output / "board"
    submission.submit(results, board, DECLARATION, replace=True)
    return board


def train(name: str, output: Path, machine: Machine, device: str, report: Reporter) -> Path:
    recipe = recipes.get(name)
    source = load_source(
        recipe.source, DataRoots.parse([]), machine.cache, recipe.input_size, report
    )
    return pretrain(recipe, source, output / "runs" / recipe.label, device=device, report=report)
