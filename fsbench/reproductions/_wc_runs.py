"""The runs behind weight compander's Figures 3 and 4, shrunk to two cores.

The paper's ResNet-34 on CIFAR-10 becomes a ResNet of four blocks on scikit-learn's digits. Kept are
a, b, momentum, the first learning rate and its steps. A run is far shorter than the paper's 200
epochs, so its two views become two phases: `start` keeps the printed weight decay and the first
rate; `end` runs the whole schedule with as much more decay as there are fewer steps, so that
rate x decay x steps, which says how far decay can pull weights in, is the paper's.

Near 0 the compander multiplies the learning rate by (a/b)^2. The third arm is a plain network at
that rate: what it has in common with the compander needs no compander.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core.progress import Reporter
from fsbench.reproductions import _digits
from fsbench.reproductions._pool import run_jobs

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context
    from protocols.analyses.weight_percentiles import WeightSpread

A, B = 0.8, 0.5
"""The paper's choice for ResNet-34 on CIFAR-10, behind its figures."""
BOUND = A * math.pi / 2
ARCHITECTURE, WIDTH, FIRST = "toy_resnet", 16, "conv1"
BATCH, LR, DECAY = 128, 0.1, 1e-4
MILESTONES = (90 / 200, 136 / 200)
STEPS = 200 * (45_000 // BATCH)
"""Optimizer steps of the paper."""


class TrainingArm(NamedTuple):
    """One way to train."""

    method: Mapping[str, object]
    lr: float = LR


PLAIN, WC, CONTROL = "without", "with", "without, lr x (a/b)^2"
ARMS = {
    PLAIN: TrainingArm({"name": "normal"}),
    WC: TrainingArm({"name": "weight_compander", "a": A, "b": B}),
    CONTROL: TrainingArm({"name": "normal"}, LR * (A / B) ** 2),
}


class TrainingPhase(NamedTuple):
    """A part of the paper's run that a short one stands for."""

    epochs: int
    decay: float
    schedule: str


def shorten_schedule(epochs: int) -> TrainingPhase:
    """The whole schedule in so many epochs."""
    steps = epochs * ((_digits.IMAGES - _digits.VALIDATION) // BATCH)
    return TrainingPhase(epochs, DECAY * STEPS / steps, "step")


START, END = "start", "end"
PHASES = {START: TrainingPhase(8, DECAY, "constant"), END: shorten_schedule(24)}


class CompanderJob(NamedTuple):
    """One run: names of a phase and an arm."""

    phase: str
    arm: str
    seed: int


class WeightTrace(NamedTuple):
    """Weights of every layer before training and after every epoch; accuracy (%) at the end."""

    epochs: Sequence[Mapping[str, WeightSpread]]
    accuracy: float


WeightTraces = Mapping[str, Mapping[str, Sequence[WeightTrace]]]
"""Phase -> arm -> seeds."""


def train_arms(seeds: int, report: Reporter) -> WeightTraces:
    """All phases and arms over this many seeds."""
    jobs = [
        CompanderJob(phase, arm, seed) for seed in range(seeds) for phase in PHASES for arm in ARMS
    ]
    found: dict[str, dict[str, list[WeightTrace]]] = {p: {arm: [] for arm in ARMS} for p in PHASES}
    for job, trace in zip(jobs, run_jobs(trace_weights, jobs, "wc_weights", report), strict=True):
        found[job.phase][job.arm].append(trace)
    return found


def compander_recipe(job: CompanderJob) -> Recipe:
    """The run's settings."""
    from pretrain.recipes.recipe import Recipe

    (method, lr), phase = ARMS[job.arm], PHASES[job.phase]
    return Recipe.model_validate(
        {
            "name": f"paper/{method['name']}",
            "architecture": ARCHITECTURE,
            "width": WIDTH,
            "source": "digits",
            "input_size": _digits.SIDE,
            "plan": {"rounds": 1, "epochs": phase.epochs},
            "methods": (method,),
            "batch_size": BATCH,
            "lr": lr,
            "momentum": 0.9,
            "weight_decay": phase.decay,
            "schedule": phase.schedule,
            "milestones": MILESTONES,
            "warmup": 0.0,
            "label_smoothing": 0.0,
            "augmentation": "none",
            "validate_every": phase.epochs,
            "seed": job.seed,
        }
    )


def trace_weights(job: CompanderJob) -> WeightTrace:
    """Train, looking at the weights after every epoch."""
    from pretrain.training.loop import pretrain
    from protocols.analyses.weight_percentiles import measure_percentiles

    seen: list[Mapping[str, WeightSpread]] = []

    def watch(ctx: Context) -> None:
        seen.append(measure_percentiles(ctx.model))

    with TemporaryDirectory() as folder:
        chosen = compander_recipe(job)
        done = pretrain(
            chosen, _digits.load_digits_source(job.seed), Path(folder) / "run", watch=watch
        )
        facts: dict[str, float] = json.loads((done / "run.json").read_text(encoding="utf8"))
    return WeightTrace(seen, 100 * facts["source_accuracy"])
