"""Linear heads side by side, one a learning rate, trained by SGD on the same batches.

The columns of all heads form one matrix, so that a step is two matrix products for all of them.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.specs import ProbeSpec
from protocols.sides import Side

TEST_ROWS = 4096
"""Test images a matrix product."""


class ProbeHeads:
    """Linear heads, one a learning rate, with their momentum; start (D + 1, C) as linear_init.

    weight (D, L * C) and bias (L * C,): the columns of the heads side by side.
    """

    def __init__(self, spec: ProbeSpec, start: Tensor) -> None:
        n_heads, n_classes = len(spec.lrs), start.shape[1]
        self.spec, self.n_classes = spec, n_classes
        self.weight, self.bias = start[:-1].repeat(1, n_heads), start[-1].repeat(n_heads)
        self.velocity = torch.zeros_like(self.weight), torch.zeros_like(self.bias)
        self.lr = start.new_tensor(spec.lrs).repeat_interleave(n_classes)
        hard = torch.eye(n_classes).to(start)
        self.targets = hard * (1 - spec.label_smoothing) + spec.label_smoothing / n_classes

    def train_epoch(self, train: Side, order: Tensor, factor: float = 1.0) -> None:
        """One epoch over train in the given order (N,); the last batch may be smaller.

        factor: on every learning rate.
        """
        lr = self.lr * factor
        for batch in torch.split(order, self.spec.batch_size):
            self.step(train.x[batch], train.y[batch], lr)

    def step(self, x: Tensor, y: Tensor, lr: Tensor) -> None:
        """torch.optim.SGD on the mean cross-entropy of x (m, D), y (m,), for every head."""
        spec, (weight_velocity, bias_velocity) = self.spec, self.velocity
        errors = torch.softmax(self.logits(x), dim=2) - self.targets[y][:, None]
        errors = errors.flatten(1).div_(len(y))
        weight_velocity.addmm_(x.mT, errors, beta=spec.momentum)
        weight_velocity.add_(self.weight, alpha=spec.weight_decay)
        bias_velocity.mul_(spec.momentum).add_(errors.sum(0))
        bias_velocity.add_(self.bias, alpha=spec.weight_decay)
        self.weight.addcmul_(weight_velocity, lr, value=-1)
        self.bias.addcmul_(bias_velocity, lr, value=-1)

    def logits(self, x: Tensor) -> Tensor:
        """(m, L, C) of features (m, D)."""
        return torch.addmm(self.bias, x, self.weight).view(len(x), -1, self.n_classes)

    def correct(self, test: Side) -> NDArray[np.bool_]:
        """(L, N): the top-1 class is right and every logit of the image is finite."""
        parts = []
        for x, y in zip(
            torch.split(test.x, TEST_ROWS), torch.split(test.y, TEST_ROWS), strict=True
        ):
            logits = self.logits(x)
            hit = (logits.argmax(dim=2) == y[:, None]) & logits.isfinite().all(dim=2)
            parts.append(hit.mT.cpu().numpy())
        return np.concatenate(parts, axis=1)
