"""Learning-rate schedules as functions of the position in a round.

`cosine` is that of SEAL's code (utils/schedulers.py), which sets the rate once per epoch: linear
warm-up (e+1)/w over the first w epochs of a round, then (1 + cos(pi (e-w) / (E-w))) / 2.
`single_cycle` is SEAL's long cosine: one cycle over all rounds with one warm-up. `step` multiplies
by gamma at fractions of a round. With `schedule_by="step"` the position e is a fraction that moves
with every batch. A round that ends early cuts its schedule off.

`plateau` is the only schedule with a state. "The Impact of Reinitialization", section 3.1, halves
the rate when the validation error has not improved for 20 epochs. Epochs are counted since the last
improvement or drop of the round, and only validated epochs count (`validate_every`). The study also
stops early on its validation split and does not state which weights continue; here a round starts
from the last weights of the one before, as in the official codes of the other methods.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pretrain.recipes.plan import TrainingClock

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe


@dataclass
class PlateauSchedule:
    """State of the schedule `plateau`; every round starts with a new one.

    best: validation accuracy (fraction). since: epoch of the round from which the wait counts.
    drops: number of drops so far. fell: whether the last epoch caused a drop.
    """

    best: float = -1.0
    since: int = -1
    drops: int = 0
    fell: bool = False

    def update(self, epoch: int, accuracy: float | None, wait: int) -> None:
        """Record the accuracy of an epoch (None: not validated); wait: epochs until a drop."""
        self.fell = False
        if accuracy is None:
            return
        if accuracy > self.best:
            self.best, self.since = accuracy, epoch
        elif epoch - self.since >= wait:
            self.since, self.drops, self.fell = epoch, self.drops + 1, True


ROUND_START = PlateauSchedule()
"""The state at the start of a round."""


def lr_factor(
    recipe: "Recipe", clock: TrainingClock, steps: int, plateau: PlateauSchedule = ROUND_START
) -> float:
    """Return the factor of the base learning rate here; steps: optimizer steps per epoch."""
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
        drops = sum(position >= fraction * length for fraction in recipe.milestones)
        return float(recipe.gamma**drops)
    return 0.5 * (1 + math.cos(math.pi * (position - warmup) / (length - warmup)))


def sum_rates(recipe: "Recipe", epochs: int, images: int, at_round: int = 0) -> float:
    """Return the sum of the learning rates over the first epochs of a round on `images` images.

    Rounds differ under `single_cycle` alone. Drops of `plateau` cannot be foreseen: there are none.
    """
    steps = max(1, min(images, recipe.plan.epoch_images or images) // recipe.batch_size)
    batches = range(steps if recipe.schedule_by == "step" else 1)
    clocks = [TrainingClock(recipe.plan, at_round, e, b) for e in range(epochs) for b in batches]
    factors = [lr_factor(recipe, clock, steps) for clock in clocks]
    return recipe.lr * sum(factors) * steps / len(batches)


def lr_drop(
    recipe: "Recipe", clock: TrainingClock, steps: int, plateau: PlateauSchedule = ROUND_START
) -> tuple[float, float] | None:
    """Return the learning rates before and after a drop at the start of this epoch, or None."""
    if recipe.schedule == "plateau" and plateau.fell:
        high = recipe.lr * recipe.plateau_factor ** (plateau.drops - 1)
        return high, high * recipe.plateau_factor
    if recipe.schedule != "step" or clock.epoch == 0:
        return None
    before = TrainingClock(clock.plan, clock.round, clock.epoch - 1)
    old, new = (recipe.lr * lr_factor(recipe, at, steps) for at in (before, clock))
    return (old, new) if new < old else None


def can_drop(recipe: "Recipe") -> bool:
    """Return whether the schedule can call the hook `lr_changed`."""
    clocks = (TrainingClock(recipe.plan, epoch=epoch) for epoch in range(recipe.plan.epochs))
    return recipe.schedule == "plateau" or any(lr_drop(recipe, clock, 1) for clock in clocks)
