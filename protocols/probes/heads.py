"""Linear heads side by side, one a learning rate, trained by SGD on the same batches.

The columns of all heads form one matrix, so that a step is two matrix products for all of them.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.specs import ProbeSpec
from protocols.probes.sides import Side

TEST_ROWS = 4096
"""Test images a matrix product."""
GATHERED = 16
"""Batches whose features are looked up at once."""


class ProbeHeads:
    """Linear heads, one a learning rate, with their momentum; start (D + 1, C) as linear_init.

    all (D + 1, L * C): the columns of the heads side by side, weights above and biases in the last
    row; weight (D, L * C) and bias (L * C,) are its parts.
    """

    def __init__(self, spec: ProbeSpec, start: Tensor) -> None:
        n_heads, n_classes = len(spec.lrs), start.shape[1]
        self.spec, self.n_classes = spec, n_classes
        self.all = start.repeat(1, n_heads)
        self.velocity = torch.zeros_like(self.all)
        self.weight, self.bias = self.all[:-1], self.all[-1]
        self.weight_velocity, self.bias_velocity = self.velocity[:-1], self.velocity[-1]
        self.lr = start.new_tensor(spec.lrs).repeat_interleave(n_classes)
        hard = torch.eye(n_classes).to(start)
        self.targets = hard * (1 - spec.label_smoothing) + spec.label_smoothing / n_classes

    @torch.inference_mode()
    def train_epoch(self, train: Side, order: Tensor, factor: float = 1.0) -> None:
        """One epoch over train in the given order (N,); the last batch may be smaller.

        factor: on every learning rate.
        """
        lr, size = self.lr * factor, self.spec.batch_size
        for rows in torch.split(order, GATHERED * size):
            features, targets = train.x.index_select(0, rows), self.targets[train.y[rows]]
            for x, wanted in zip(
                torch.split(features, size), torch.split(targets, size), strict=True
            ):
                self.step(x, wanted, lr)

    def step(self, x: Tensor, targets: Tensor, lr: Tensor) -> None:
        """torch.optim.SGD on the mean cross-entropy of x (m, D), targets (m, C), for every head."""
        errors = torch.softmax(self.few_logits(x), dim=2).sub_(targets[:, None])
        errors = errors.flatten(1).div_(len(x))
        self.weight_velocity.addmm_(x.mT, errors, beta=self.spec.momentum)
        self.bias_velocity.mul_(self.spec.momentum).add_(errors.sum(0))
        self.velocity.add_(self.all, alpha=self.spec.weight_decay)
        self.all.addcmul_(self.velocity, lr, value=-1)

    def logits(self, x: Tensor) -> Tensor:
        """(m, L, C) of features (m, D)."""
        return torch.addmm(self.bias, x, self.weight).view(len(x), -1, self.n_classes)

    def few_logits(self, x: Tensor) -> Tensor:
        """logits of few images, as a product of transposes: up to a fifth faster on CPUs."""
        columns = torch.addmm(self.bias[:, None], self.weight.mT, x.mT)
        return columns.mT.reshape(len(x), -1, self.n_classes)

    @torch.inference_mode()
    def correct(self, test: Side) -> NDArray[np.bool_]:
        """(L, N): the top-1 class is right and every logit of the image is finite."""
        parts = []
        for x, y in zip(
            torch.split(test.x, TEST_ROWS), torch.split(test.y, TEST_ROWS), strict=True
        ):
            logits = self.logits(x)
            finite = logits.amax(dim=2).isfinite() & logits.amin(dim=2).isfinite()
            parts.append(((logits.argmax(dim=2) == y[:, None]) & finite).mT.cpu().numpy())
        return np.concatenate(parts, axis=1)
