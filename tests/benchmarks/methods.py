"""What a step costs under every method, beside `normal`: `python -m benchmarks.methods`.

A step is the loop's own, from batch to weights, on generated images in memory. Every method has its
own copy of the same network and takes the same batch again and again, in the first epoch of a later
round or stage, where masks are held and SEAL ascends. One step of each makes an interleaved round;
the order rotates and the table shows medians, with `normal` twice (A/A) for the noise.

Events (the hooks before that epoch and at a drop of the learning rate) and setup are timed on their
own, beyond those of `normal`. Shares are those of one round of the paper recipe, 160 epochs of
TinyImageNet. Setup happens once a run; iterations of `nio` and `gradinit` are timed for a few.
"""

import argparse
import gc
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from benchmarks.pairing import make_parser, seconds
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
NORMAL, AGAIN = "normal", "normal (A/A)"
TARGETS = {
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
FEW, SOME = 1, 3
"""Iterations of an initialization that are timed."""


def split(n: int, side: int, name: str) -> Split:
    pixels = words(n * 3 * side * side, "bench", name).astype(np.uint8)
    return Split(pixels.reshape(n, 3, side, side), np.arange(n, dtype=np.int64) % CLASSES)


def generated(side: int, batch_size: int, batches: int = STAGE_PARTS) -> SourceDataset:
    """Noise: so many batches of images; by default one batch for every half of them."""
    facts = describe_images("bench", CLASSES, 1, "source")
    train, val = split(batches * batch_size, side, "train"), split(batch_size, side, "val")
    mean = std = (0.5, 0.5, 0.5)
    return SourceDataset("bench", facts, train, val, CLASSES, mean, std, "0" * 64)


def recipe(name: str, options: argparse.Namespace, iterations: int = FEW) -> Recipe:
    """The paper base with the method, its plan where it needs one, on the network of the bench."""
    method = METHODS.load(name)
    pilot = registry.scaled(method)["pilot"]
    plan = {n: v for n, v in pilot.items() if n.partition(".")[0] != name or name == "lw"}
    bench = {
        "architecture": options.architecture,
        "width": options.width,
        "input_size": options.side,
    }
    counted = {f"{name}.iterations": iterations} if iterated(name) else {}
    made = registry.build_recipe(f"paper/{name}", method, plan)
    return made.replace(
        {**bench, "batch_size": options.batch, **DEMANDING.get(name, {}), **counted}
    )


def iterated(name: str) -> bool:
    """Whether the method is an initialization of so many iterations."""
    return "iterations" in METHODS.load(name).model_fields


class Runner:
    """A run at the first epoch of its second round or stage; setup and event are in seconds."""

    def __init__(self, name: str, options: argparse.Namespace, source: SourceDataset, out: Path):
        self.name, self.method = name, name.partition(" ")[0]
        self.start = lambda n: start(recipe(self.method, options, n), source, out)
        self.trainer, self.setup = self.start(FEW)
        self.event = self.advance()

    def advance(self) -> float:
        """A step in the first round, then the timed hooks up to the next position."""
        trainer, plan = self.trainer, self.trainer.recipe.plan
        trainer._open_epoch(1)
        trainer._step(1)
        trainer.ctx.call("round_end")
        later = TrainingClock(plan, round=plan.rounds if len(plan.stages) > 1 else 1)
        trainer.ctx.clock = later
        opened = seconds(lambda: trainer._open_epoch(1))
        return opened + seconds(lambda: trainer.ctx.call("lr_changed", 1.0, 0.1))

    def step(self) -> float:
        """Seconds of one step, always at the same position."""
        taken = seconds(lambda: self.trainer._step(1))
        self.trainer.ctx.clock.batch = 0
        return taken

    def whole_setup(self) -> float:
        """Seconds of setup with all iterations, most of them extrapolated."""
        if not iterated(self.method):
            return self.setup
        few, some = (self.start(iterations)[1] for iterations in (FEW, SOME))
        return few + (some - few) / (SOME - FEW) * (METHODS.load(self.method)().iterations - FEW)


def start(made: Recipe, source: SourceDataset, parent: Path) -> tuple[Trainer, float]:
    """A trainer at step 0, and how long its setup took."""
    out = Path(tempfile.mkdtemp(dir=parent))
    trainer = Trainer(made, source, out, torch.device("cpu"), SILENT)
    return trainer, seconds(trainer._start)


def interleaved(runners: Sequence[Runner], rounds: int) -> dict[str, float]:
    """Median seconds of a step by name; the order rotates, one warm-up round is left out."""
    seconds: dict[str, list[float]] = {runner.name: [] for runner in runners}
    gc.disable()
    for turn in range(rounds + 1):
        at = turn % len(runners)
        for runner in (*runners[at:], *runners[:at]):
            seconds[runner.name].append(runner.step())
    gc.enable()
    return {name: median(times[1:]) for name, times in seconds.items()}


class Row(NamedTuple):
    """One method: times in seconds; ratio to `normal`; shares of one round of the paper recipe."""

    name: str
    step: float
    ratio: float
    target: float | None
    event: float
    event_share: float
    setup: float
    setup_share: float

    def __str__(self) -> str:
        bound = "" if self.target is None else f"<= {self.target:.2f}"
        over = self.event_share > ROUND_SHARE or (self.target or self.ratio) < self.ratio
        return (
            f"{self.name:18} {1e3 * self.step:9.1f} {self.ratio:6.3f} {bound:>8}"
            f" {1e3 * self.event:9.1f} {self.event_share:8.4%}"
            f" {self.setup:8.2f} {self.setup_share:8.4%} {'OVER' if over else ''}"
        )


def measure(options: argparse.Namespace) -> list[Row]:
    """A row a method, `normal` twice at the top."""
    source = generated(options.side, options.batch)
    others = [name for name in options.methods if name != NORMAL]
    with tempfile.TemporaryDirectory() as folder:
        runners = [Runner(n, options, source, Path(folder)) for n in (NORMAL, AGAIN, *others)]
        steps = interleaved(runners, options.rounds)
        setups = {runner.name: runner.whole_setup() for runner in runners}
    plain, bounded = runners[0], options.batch == BOUNDED_BATCH
    whole = steps[NORMAL] * PAPER_IMAGES / options.batch
    rows = []
    for runner in runners:
        name, event = runner.name, runner.event - plain.event
        setup, target = setups[name] - setups[NORMAL], TARGETS.get(name) if bounded else None
        ratio = steps[name] / steps[NORMAL]
        shares = event / whole, setup / whole
        rows.append(Row(name, steps[name], ratio, target, event, shares[0], setup, shares[1]))
    return rows


def parser() -> argparse.ArgumentParser:
    made = make_parser(__doc__)
    made.add_argument("--rounds", type=int, default=14)
    made.add_argument("--batch", type=int, default=BOUNDED_BATCH)
    made.add_argument("--methods", nargs="+", default=TIMED, choices=TIMED)
    made.add_argument("--threads", type=int, default=None)
    made.add_argument("--architecture", default="timm/resnet18")
    made.add_argument("--width", type=int, default=None)
    made.add_argument("--side", type=int, default=64, help="px")
    return made


def main() -> None:
    options = parser().parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {options.architecture} at"
        f" {options.side} px, batch {options.batch}, median of {options.rounds}"
    )
    print(
        f"{'method':18} {'ms/step':>9} {'ratio':>6} {'target':>8} {'event ms':>9} {'share':>8}"
        f" {'setup s':>8} {'share':>8}"
    )
    for row in measure(options):
        print(row)


if __name__ == "__main__":
    main()
