"""Driving a run to its second stage, with all tensors at the start, before and after the event."""

from pathlib import Path
from typing import NamedTuple

import torch
from support.pretrain import epochs, tiny, trainer
from torch import Tensor

from pretrain.training.loop import Trainer

Tensors = dict[str, Tensor]


class Event(NamedTuple):
    """A run at the start of its second stage; state dicts of its model."""

    made: Trainer
    start: Tensors
    before: Tensors
    after: Tensors

    @property
    def changed(self) -> set[str]:
        return {n for n in self.before if not torch.equal(self.before[n], self.after[n])}


def tensors(made: Trainer) -> Tensors:
    return {n: t.detach().clone() for n, t in made.ctx.model.state_dict().items()}


def at_new_data(method: str, out: Path, *assignments: str) -> Event:
    """The method's tiny recipe with one round a stage, run up to the event."""
    made = trainer(tiny(method, "plan.rounds=1", *assignments), out)
    start = tensors(made)
    epochs(made, made.recipe.plan.epochs)
    before = tensors(made)
    made._open_epoch(2)
    return Event(made, start, before, tensors(made))
