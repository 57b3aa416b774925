"""What a run will cost, from a few timed steps on a scratch network: plain, or a meta-learner's."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from fsbench.core import seeding
from pretrain.meta.learner import learner_of
from pretrain.recipes.steps import fitted
from pretrain.training.build import build_context
from pretrain.training.cost import Counting
from pretrain.training.validation import autocast

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

TIMED_STEPS = 3
FORWARD_SHARE = 1 / 3
"""A validation image costs a forward pass, a third of a training image."""


@dataclass(frozen=True)
class Estimate:
    """Of a whole run from its beginning: optimizer steps, seconds, bytes on disk, and the FLOPs of
    its training steps as pretrain/training/cost.py counts them."""

    steps: int
    seconds: float
    disk: int
    flops: int = 0

    def __str__(self) -> str:
        minutes = f"{self.seconds / 60:.1f} min"
        shown = f"{self.seconds / 3600:.1f} h" if self.seconds > 7200 else minutes
        return f"{self.steps} steps, about {shown}, {self.disk / 1e6:.0f} MB on disk"


def estimate(recipe: Recipe, source: SourceDataset, device: str) -> Estimate:
    """Time steps after one to warm up; hooks of methods may add to it, rounds may end early."""
    recipe = fitted(recipe, source)
    ctx = build_context(recipe, source, torch.device(device), lambda rewrite: None)
    for method in ctx.having("training_step"):
        ctx.acting = method.name
        method.setup(ctx)
    ctx.rebuild_optimizer("all")
    with seeding.stream(*recipe.stream("estimate")):  # of dropout
        seconds, flops = step_cost(ctx)
    steps, epochs = ctx.loader.total_steps, recipe.plan.total_epochs
    validated = validation_images(recipe, source) * epochs / recipe.validate_every
    validation = validated * seconds / recipe.batch_size * FORWARD_SHARE
    size = sum(t.numel() * t.element_size() for t in ctx.model.state_dict().values())
    # weights, momentum and the export; the next checkpoint stands beside the last one for a moment
    buffers = 2 if recipe.optimizer == "adam" else 1
    disk = size * (2 * (1 + buffers) + 1)
    return Estimate(steps, steps * seconds + validation, disk, steps * flops)


def validation_images(recipe: Recipe, source: SourceDataset) -> float:
    """Images of one validation, as forward passes; adapting to a task costs as training does."""
    if recipe.loader != "episodes":
        return len(source.val)
    learner = learner_of(recipe)
    return learner.val_episodes * learner.task_images / FORWARD_SHARE


def step_cost(ctx: Context) -> tuple[float, int]:
    """Seconds and FLOPs of one training step: the fastest one, after one to warm up and count."""
    with Counting() as counter:
        timed_step(ctx)
    return min(timed_step(ctx) for _ in range(TIMED_STEPS)), counter.flops


def timed_step(ctx: Context) -> float:
    """Seconds of a training step, of which nothing is kept."""
    started = time.monotonic()
    batch = ctx.loader.batch(ctx.clock)
    with autocast(ctx.recipe, ctx.device):
        losses = ctx.call("training_step", batch)
        if not losses:
            losses = [functional.cross_entropy(ctx.model(batch.images), batch.labels)]
    torch.autograd.backward(losses[0])
    ctx.optimizer.step()
    losses[0].item()
    return time.monotonic() - started
