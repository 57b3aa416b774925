"""Learning-rate schedules as pure functions of the position: restarting one needs no state.

SEAL's code (utils/schedulers.py) sets the rate once an epoch: linear warm-up (e+1)/w over the
first w epochs of a round, then (1 + cos(pi (e-w) / (E-w))) / 2. `single_cycle` is its long cosine,
one cycle over all rounds, warmed up once. `step` multiplies by gamma at fractions of a round.
With `schedule_by="step"` the position e is a fraction that moves with every batch. A round that
ends early cuts its schedule off. `plateau` alone depends on more than the position.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pretrain.recipes.plan import TrainingClock


@dataclass
class PlateauSchedule:
    """best: validation accuracy (fraction); since: epoch of the round that the wait counts from;
    drops: of the rate, so far; fell: whether the epoch that is just over made one. A round starts
    with a new one.
    """

    best: float = -1.0
    since: int = -1
    drops: int = 0
    fell: bool = False

    def see(self, epoch: int, accuracy: float | None, wait: int) -> None:
        """The epoch is over, with this accuracy if it was validated; wait: epochs until a drop."""
        self.fell = False
        if accuracy is None:
            return
        if accuracy > self.best:
            self.best, self.since = accuracy, epoch
        elif epoch - self.since >= wait:
            self.since, self.drops, self.fell = epoch, self.drops + 1, True

    def state(self) -> dict[str, Any]:
        return asdict(self)


if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

UNTOUCHED = PlateauSchedule()
"""Of a round at its start."""


def cosine_factor(position: float, length: float, warmup: float) -> float:
    """Half a cosine from 1 at `warmup` to 0 at `length`; all in epochs."""
    return 0.5 * (1 + math.cos(math.pi * (position - warmup) / (length - warmup)))


def step_factor(
    position: float, length: float, milestones: tuple[float, ...], gamma: float
) -> float:
    """gamma to the power of the milestones (fractions of `length`) that are reached."""
    reached: float = gamma ** sum(position >= fraction * length for fraction in milestones)
    return reached


def lr_factor(
    recipe: Recipe, clock: TrainingClock, steps: int, plateau: PlateauSchedule = UNTOUCHED
) -> float:
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
        return step_factor(position, length, recipe.milestones, recipe.gamma)
    return cosine_factor(position, length, warmup)


def drop_epochs(recipe: Recipe) -> tuple[int, ...]:
    """Epochs of a round at whose start a `step` schedule has dropped the rate."""
    if recipe.schedule != "step":
        return ()
    clocks = [TrainingClock(recipe.plan, epoch=epoch) for epoch in range(recipe.plan.epochs)]
    rates = [lr_factor(recipe, clock, 1) for clock in clocks]
    return tuple(e for e in range(1, len(rates)) if rates[e] < rates[e - 1])


def lr_drop(
    recipe: Recipe, clock: TrainingClock, steps: int, plateau: PlateauSchedule
) -> tuple[float, float] | None:
    """The learning rates before and after a drop at the start of this epoch of a round."""
    if recipe.schedule == "plateau" and plateau.fell:
        high = recipe.lr * recipe.plateau_factor ** (plateau.drops - 1)
        return high, high * recipe.plateau_factor
    if recipe.schedule != "step" or clock.epoch == 0:
        return None
    before = TrainingClock(clock.plan, clock.round, clock.epoch - 1)
    old, new = (recipe.lr * lr_factor(recipe, at, steps) for at in (before, clock))
    return (old, new) if new < old else None


def can_drop(recipe: Recipe) -> bool:
    """Whether `lr_changed` can ever be called."""
    return recipe.schedule == "plateau" or bool(drop_epochs(recipe))
