"""Learning-rate schedules as pure functions of the position: restarting one needs no state.

SEAL's code (utils/schedulers.py) sets the rate once an epoch: linear warm-up (e+1)/w over the
first w epochs of a round, then (1 + cos(pi (e-w) / (E-w))) / 2. `single_cycle` is its long cosine,
one cycle over all rounds, warmed up once. `step` multiplies by gamma at fractions of a round.
With `schedule_by="step"` the position e is a fraction that moves with every batch. A round that
ends early cuts its schedule off. `plateau` alone depends on more than the position.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pretrain.recipes.plan import Clock
from pretrain.recipes.plateau import Plateau

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

UNTOUCHED = Plateau()
"""Of a round at its start."""


def cosine(position: float, length: float, warmup: float) -> float:
    """Half a cosine from 1 at `warmup` to 0 at `length`; all in epochs."""
    return 0.5 * (1 + math.cos(math.pi * (position - warmup) / (length - warmup)))


def step(position: float, length: float, milestones: tuple[float, ...], gamma: float) -> float:
    """gamma to the power of the milestones (fractions of `length`) that are reached."""
    reached: float = gamma ** sum(position >= fraction * length for fraction in milestones)
    return reached


def factor(recipe: Recipe, clock: Clock, steps: int, plateau: Plateau = UNTOUCHED) -> float:
    """What the base learning rate is multiplied by at this position.

    steps: of an epoch; plateau: what the round's validation has shown, of that schedule only.
    """
    unit = 1.0 if recipe.schedule_by == "epoch" else 1.0 / steps
    position = clock.epoch + (0.0 if recipe.schedule_by == "epoch" else clock.batch * unit)
    length, warmup = recipe.plan.epochs, recipe.warmup_epochs
    if recipe.schedule == "single_cycle":
        position += clock.round * length
        length = recipe.plan.total_epochs
    if position < warmup:
        return (position + unit) / warmup
    if recipe.schedule == "constant":
        return 1.0
    if recipe.schedule == "plateau":
        return float(recipe.plateau_factor**plateau.drops)
    if recipe.schedule == "step":
        return step(position, length, recipe.milestones, recipe.gamma)
    return cosine(position, length, warmup)


def drops(recipe: Recipe) -> tuple[int, ...]:
    """Epochs of a round at whose start a `step` schedule has dropped the rate."""
    if recipe.schedule != "step":
        return ()
    clocks = [Clock(recipe.plan, epoch=epoch) for epoch in range(recipe.plan.epochs)]
    rates = [factor(recipe, clock, 1) for clock in clocks]
    return tuple(e for e in range(1, len(rates)) if rates[e] < rates[e - 1])


def dropped(
    recipe: Recipe, clock: Clock, steps: int, plateau: Plateau
) -> tuple[float, float] | None:
    """The learning rates before and after a drop at the start of this epoch of a round."""
    if recipe.schedule == "plateau" and plateau.fell:
        high = recipe.lr * recipe.plateau_factor ** (plateau.drops - 1)
        return high, high * recipe.plateau_factor
    if recipe.schedule != "step" or clock.epoch == 0:
        return None
    before = Clock(clock.plan, clock.round, clock.epoch - 1)
    old, new = (recipe.lr * factor(recipe, at, steps) for at in (before, clock))
    return (old, new) if new < old else None


def may_drop(recipe: Recipe) -> bool:
    """Whether `lr_changed` can ever be called."""
    return recipe.schedule == "plateau" or bool(drops(recipe))
