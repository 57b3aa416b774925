"""What a step costs under every method, beside `normal`: `python -m benchmarks.methods`.

A step is the loop's own, from batch to weights, on generated images in memory. Every method has its
own copy of the same network and takes the same batch again and again, in the first epoch of a later
round or stage, where masks are applied and SEAL ascends, in turns with a step of `normal`; `normal`
beside itself comes first. A round's events (the hooks before that epoch and at a drop of the
learning rate) are timed on their own; their share is that of one round of the paper recipe, 160
epochs of TinyImageNet.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from benchmarks.pairing import Measurement, make_parser, seconds, take_paired_rounds
from support.protocols import describe_images

from fsbench.core.progress import SILENT
from fsbench.core.seeding import words
from fsbench.data import SourceDataset, Split
from pretrain import METHODS
from pretrain.method import hooks_of
from pretrain.recipes import registry
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import Trainer

BOUNDED_BATCH, CLASSES, STAGE_PARTS = 128, 200, 2
PAPER_IMAGES = 160 * 100_000
"""Images of a round of the paper recipe."""
ROUND_SHARE = 0.01
NORMAL = "normal"
BOUNDS = {
    **dict.fromkeys(("swr", "swr_reanchor", "l2", "l2_init"), 1.05),
    **dict.fromkeys(("dsd", "imp", "kels", "wels", "welsr"), 1.05),
    "weight_compander": 1.10,
    **dict.fromkeys(("weight_norm", "powerprop"), 1.20),
}
"""Step time over that of `normal`, at batch 128."""
DEMANDING: Mapping[str, Mapping[str, object]] = {"dsd": {"dsd.sparse_epochs": 1}}
"""Settings under which a method has something to do in every step."""
TIMED = [n for n in METHODS.names() if "training_step" not in hooks_of(METHODS.load(n))]
"""All but meta-learners, whose steps are no plain ones with something added."""


class Network(NamedTuple):
    """An architecture, the side of its images in pixels, and how many of them a step takes."""

    architecture: str = "timm/resnet18"
    side: int = 64
    batch: int = BOUNDED_BATCH
    width: int | None = None


def split(n: int, side: int, name: str) -> Split:
    pixels = words(n * 3 * side * side, "bench", name).astype(np.uint8)
    return Split(pixels.reshape(n, 3, side, side), np.arange(n, dtype=np.int64) % CLASSES)


def generate_source(side: int, batch_size: int, batches: int = STAGE_PARTS) -> SourceDataset:
    """Return noise: so many batches of images; by default one batch for every half of them."""
    facts = describe_images("bench", CLASSES, 1, "source")
    train, val = split(batches * batch_size, side, "train"), split(batch_size, side, "val")
    mean = std = (0.5, 0.5, 0.5)
    return SourceDataset("bench", facts, train, val, "0" * 64, mean=mean, std=std)


def make_recipe(name: str, network: Network) -> Recipe:
    """Return the paper base with the method, its plan where it needs one, on a network."""
    method = METHODS.load(name)
    pilot = registry.scaled(method)["pilot"]
    plan = {n: v for n, v in pilot.items() if n.partition(".")[0] != name or name == "lw"}
    settings = {
        "architecture": network.architecture,
        "width": network.width,
        "input_size": network.side,
        "batch_size": network.batch,
        **({f"{name}.iterations": 1} if "iterations" in method.model_fields else {}),
        **DEMANDING.get(name, {}),
    }
    return registry.build_recipe(f"paper/{name}", method, plan).replace(settings)


class Runner:
    """A run at the first epoch of its second round or stage; event: seconds of what starts it."""

    def __init__(self, name: str, network: Network, source: SourceDataset, parent: Path) -> None:
        out, recipe = Path(tempfile.mkdtemp(dir=parent)), make_recipe(name, network)
        self.trainer = trainer = Trainer(recipe, source, out, torch.device("cpu"), SILENT)
        trainer._start()
        trainer._open_epoch(1)
        trainer._step(1)
        trainer.ctx.call("round_end")
        plan = recipe.plan
        trainer.ctx.clock = TrainingClock(plan, round=plan.rounds if len(plan.stages) > 1 else 1)
        self.event = seconds(lambda: trainer._open_epoch(1))
        self.event += seconds(lambda: trainer.ctx.call("lr_changed", 1.0, 0.1))

    def step(self) -> float:
        """Return the seconds of one step, always at the same position."""
        taken = seconds(lambda: self.trainer._step(1))
        self.trainer.ctx.clock.batch = 0
        return taken


class Row(NamedTuple):
    """A method: seconds of its step and of its events; share: of the events in a paper's round."""

    name: str
    step: float
    ratio: float
    noise: float
    event: float
    share: float
    bound: float | None

    def __str__(self) -> str:
        bound = "" if self.bound is None else f"<= {self.bound:.2f}"
        is_over = self.share > ROUND_SHARE or (self.bound or self.ratio) < self.ratio
        return (
            f"{self.name:18} {1e3 * self.step:9.1f} {self.ratio:6.3f} {self.noise:6.3f} {bound:>8}"
            f" {1e3 * self.event:9.1f} {self.share:8.4%} {'OVER' if is_over else ''}"
        )


def measure(methods: list[str], network: Network, rounds: int) -> Iterator[Row]:
    """Yield the rows of some methods, that of `normal` first."""
    source = generate_source(network.side, network.batch)
    with tempfile.TemporaryDirectory() as folder:
        plain = Runner(NORMAL, network, source, Path(folder))
        for name in dict.fromkeys((NORMAL, *methods)):
            ours = Runner(name, network, source, Path(folder))
            taken = Measurement([take_paired_rounds(plain.step, ours.step, rounds)])
            event = ours.event - plain.event
            share = event / (taken.median("plain") * PAPER_IMAGES / network.batch)
            bound = BOUNDS.get(name) if network.batch == BOUNDED_BATCH else None
            step, ratio = taken.median("ours"), 1 / taken.median("ratio")
            yield Row(name, step, ratio, taken.median("noise"), event, share, bound)


def parser() -> argparse.ArgumentParser:
    made = make_parser(__doc__)
    made.add_argument("--rounds", type=int, default=14)
    made.add_argument("--batch", type=int, default=BOUNDED_BATCH)
    made.add_argument("--methods", nargs="+", default=TIMED, choices=TIMED)
    made.add_argument("--threads", type=int, default=torch.get_num_threads())
    return made


def main() -> None:
    options = parser().parse_args()
    torch.set_num_threads(options.threads)
    network = Network(batch=options.batch)
    print(f"torch {torch.__version__}, {options.threads} threads, {network}")
    heads = ("method", "ms/step", "ratio", "A/A", "bound", "event ms", "share")
    print("{:18} {:>9} {:>6} {:>6} {:>8} {:>9} {:>8}".format(*heads))
    for row in measure(options.methods, network, options.rounds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
