"""Driving a run over its round and stage starts, with all effective tensors before and after."""

from pathlib import Path
from typing import NamedTuple

import torch
from support.pretrain import epochs, tiny, trainer
from torch import Tensor

from pretrain.training.loop import Trainer
from pretrain.weights import surgery

Tensors = dict[str, Tensor]


class Event(NamedTuple):
    """A run at a round or stage start: its tensors at the start of the run, before and after."""

    made: Trainer
    start: Tensors
    before: Tensors
    after: Tensors

    @property
    def changed(self) -> set[str]:
        return changed(self.before, self.after)

    @property
    def tensors(self) -> set[str]:
        return set(self.start)

    @property
    def parameters(self) -> set[str]:
        return {name for name, _ in self.made.ctx.model.named_parameters()}

    @property
    def kernels(self) -> set[str]:
        return kernel_names(self.made)


def tensors(made: Trainer) -> Tensors:
    """Clones of all effective tensors of the plain architecture."""
    ctx = made.ctx
    names = ctx.plain_names()
    return {n: surgery.get_weight(ctx.model, n).detach().clone() for n in names}


def train_round(made: Trainer) -> None:
    """The rest of the current round, up to the start of the next one."""
    left = made.recipe.plan.epochs - made.ctx.clock.epoch
    epochs(made, left)


def open_round(made: Trainer) -> tuple[Tensors, Tensors]:
    """All tensors before and after the events of the round that starts."""
    before = tensors(made)
    made._open_epoch(made.ctx.loader.steps(made.ctx.clock.stage))
    return before, tensors(made)


AT_NEW_DATA = ("full_reset", "head_reset", "shrink_perturb")
"""Methods that act on new data; their tiny runs have one round a stage."""


def at_event(method: str, out: Path, *assignments: str) -> Event:
    """A run at its first event, the start of round 1."""
    one_round = ("plan.rounds=1",) if method in AT_NEW_DATA else ()
    made = trainer(tiny(method, *one_round, *assignments), out)
    start = tensors(made)
    train_round(made)
    return Event(made, start, *open_round(made))


def next_event(made: Trainer) -> tuple[Tensors, Tensors]:
    """All tensors before and after the next round's events, where an epoch is open."""
    finish_epoch(made)
    train_round(made)
    return open_round(made)


def finish_epoch(made: Trainer) -> None:
    """The steps of an epoch that is open already."""
    steps = made.ctx.loader.steps(made.ctx.clock.stage)
    while made.ctx.clock.batch < steps:
        made._step(steps)
    made._close_epoch()


def changed(before: Tensors, after: Tensors) -> set[str]:
    """Names of the tensors with any other bit."""
    return {name for name in before if not torch.equal(before[name], after[name])}


def kernel_names(made: Trainer) -> set[str]:
    return {f"{layer}.weight" for layer in made.ctx.roles.layers}
