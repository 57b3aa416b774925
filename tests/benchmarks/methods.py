"""A step of pretraining with a method, beside a step of `normal`.

A step is the loop's own, from batch to weights, on generated images in memory. Both sides have
their own copy of the same network and take the same batch again and again, in the first epoch of a
later round or stage, where masks are applied and SEAL ascends.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from benchmarks.pairing import Settings, Side, timer
from support.protocols import describe_images

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.progress import SILENT
from fsbench.core.seeding import words
from fsbench.data import SourceDataset, Split
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.episodes import MetaLearner
from pretrain.training.loop import Trainer

CPU = torch.device("cpu")
CLASSES, STAGE_PARTS = 200, 2
BOUNDS = {
    **dict.fromkeys(("swr", "swr_reanchor", "l2", "l2_init"), 1.05),
    **dict.fromkeys(("dsd", "imp", "kels", "wels", "welsr"), 1.05),
    "weight_compander": 1.10,
    **dict.fromkeys(("weight_norm", "powerprop"), 1.20),
}
"""Largest time of a step over that of `normal`."""
SETTINGS: dict[str, dict[str, object]] = {
    "dsd": {"dsd.sparse_epochs": 1},
    **{name: {f"{name}.iterations": 0} for name in ("gradinit", "nio")},
}
"""Settings under which a method has something to do in every step, and no search before."""
TASKS = {"way": 2, "shots": 1, "queries": 1}


class Network(NamedTuple):
    """An architecture, the side of its images in pixels, and how many of them a step takes."""

    architecture: str
    side: int
    batch: int
    width: int | None = None


def split(n: int, side: int, name: str) -> Split:
    pixels = words(n * 3 * side * side, "bench", name).astype(np.uint8)
    labels = np.arange(n, dtype=np.int64) // 2 % CLASSES  # two of a class, for a task
    return Split(pixels.reshape(n, 3, side, side), labels)


def generate_source(side: int, batch_size: int, batches: int = STAGE_PARTS) -> SourceDataset:
    """Return noise: so many batches of images; by default one batch for every half of them."""
    facts = describe_images("bench", CLASSES, 1, "source")
    train, val = split(batches * batch_size, side, "train"), split(batch_size, side, "val")
    mean = std = (0.5, 0.5, 0.5)
    return SourceDataset("bench", facts, train, val, "0" * 64, mean=mean, std=std)


def make_recipe(name: str, network: Network) -> Recipe:
    """Return the paper base with a method, its plan where it needs one, on a network.

    name: of one method, or `imp+weight_compander`, with the plan of the first.
    """
    names, name = name, name.partition("+")[0]
    method = METHODS.load(name)
    pilot = registry.scaled(method)["pilot"]
    plan = {n: v for n, v in pilot.items() if n.partition(".")[0] != name or name == "lw"}
    settings = {
        "architecture": network.architecture,
        "width": network.width,
        "input_size": network.side,
        "batch_size": network.batch,
        **SETTINGS.get(name, {}),
    }
    if issubclass(method, MetaLearner):
        settings |= {f"{name}.{field}": value for field, value in TASKS.items()}
    recipe = registry.build_recipe(f"paper/{name}", method, plan).replace(settings)
    return registry.compose_methods(recipe, names)


def start_later(
    name: str,
    network: Network,
    source: SourceDataset,
    out: Path,
    device: torch.device = CPU,
    ranks: Ranks = ALONE,
) -> Trainer:
    """Return a run at the first epoch of its second round or stage."""
    recipe = make_recipe(name, network)
    trainer = Trainer(recipe, source, out, device, SILENT, ranks=ranks)
    trainer._start()
    trainer._open_epoch(1)
    trainer._step(1)
    trainer.ctx.call("round_end")
    plan = recipe.plan
    trainer.ctx.clock = TrainingClock(plan, round=plan.rounds if len(plan.stages) > 1 else 1)
    trainer._open_epoch(1)
    return trainer


def take_step(trainer: Trainer) -> None:
    """Take a step, always at the same position."""
    trainer._step(1)
    trainer.ctx.clock.batch = 0


def make_sides(settings: Settings, folder: Path, name: str, network: Network) -> tuple[Side, Side]:
    """Return seconds per image of a step of `normal` and of one with the method."""
    source = generate_source(network.side, network.batch)
    plain, ours = (
        start_later(method, network, source, Path(tempfile.mkdtemp(dir=folder)))
        for method in ("normal", name)
    )
    sides = [timer(lambda run=run: take_step(run), network.batch) for run in (plain, ours)]
    return sides[0], sides[1]
