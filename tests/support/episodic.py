"""A meta-learner in front of its first batch, and its gradients by a reference of the test."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from support.pretrain import tiny, trainer
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from pretrain.training.batches import Batch
from pretrain.training.episodes import MetaLearner, TaskImages, meta_learner_of
from pretrain.training.loop import Trainer

Weights = Mapping[str, Tensor]
Answers = Callable[[nn.Module, Weights, TaskImages], Tensor]
"""Reference: network, its weights, a task -> logits of the queries."""


class Prepared:
    """A run of a meta-learner whose next step is the first one: its batch and its tasks."""

    def __init__(self, out: Path, name: str, *assignments: str) -> None:
        self.made: Trainer = trainer(tiny(name, *assignments), out)
        self.made._open_epoch(2)
        self.ctx = self.made.ctx
        self.learner: MetaLearner = meta_learner_of(self.made.recipe)
        self.batch: Batch = self.ctx.loader.batch(self.ctx.clock)
        self.tasks = list(self.learner.tasks(self.batch))
        self.ctx.acting = self.learner.name

    def gradients(self) -> dict[str, Tensor]:
        """Of everything that is trained, by the method's own step."""
        model, parameters = self.ctx.model, dict(self.ctx.parameters)
        before = copy.deepcopy(model.state_dict())
        torch.autograd.backward(self.learner.training_step(self.ctx, self.batch))
        model.load_state_dict(before)
        return {name: p.grad.clone() for name, p in parameters.items() if p.grad is not None}

    def expected(self, answers: Answers, more: Weights | None = None) -> dict[str, Tensor]:
        """The same by the reference; more: what else is trained."""
        model = copy.deepcopy(self.ctx.model)
        weights = {**dict(model.named_parameters()), **(more or {})}
        losses = [
            functional.cross_entropy(answers(model, weights, task), task.query_labels)
            for task in self.tasks
        ]
        gradients = torch.autograd.grad(sum(losses) / len(losses), list(weights.values()))
        return dict(zip(weights, gradients, strict=True))


def logits(model: nn.Module, weights: Weights, images: Tensor) -> Tensor:
    """What the network says with these weights."""
    replaced = {
        name: value for name, value in weights.items() if name in dict(model.named_parameters())
    }
    return functional_call(model, replaced, (images,))


def close(ours: Weights, theirs: Weights) -> bool:
    """The same names, and values equal up to rounding; not all of them zero."""
    assert ours.keys() == theirs.keys()
    assert any(value.abs().max() > 1e-3 for value in theirs.values())
    return all(torch.allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-5) for name in theirs)
