"""Linear probe: a linear classifier on all frozen features, several learning rates side by side.

Source: protocol.md 4 (SEAL 4.2): SGD momentum 0.9, weight decay 1e-4, constant learning rate from
{0.1, 0.01, 0.001}, 120 epochs, highest test accuracy reported. The paper's best epoch is picked on
test, so the last epoch is recorded beside it. Features are raw and cached (no augmentation); the
heads of all learning rates share their init and the order of batches, and lie side by side as
columns of one matrix, so that a step is two matrix products for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.errors import CheckpointError, DataError
from fsbench.progress import SILENT, Reporter
from fsbench.records import ProbeRecords
from fsbench.seeding import permutations
from fsbench.specs import ProbeSpec
from protocols.base import Inputs
from protocols.draws import linear_init

Index = NDArray[np.int64]
TEST_ROWS = 4096
"""Test images a matrix product."""


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a split: features (N, D) and labels (N,) in 0..C-1."""

    x: Tensor
    y: Tensor


def evaluate(
    inputs: Inputs,
    spec: ProbeSpec,
    train_idx: Index,
    test_idx: Index,
    report: Reporter = SILENT,
) -> ProbeRecords:
    """Train on the images train_idx, test on test_idx (whose order the records keep).

    A learning rate that diverges stays in the records, its test images counted as wrong. Raises
    CheckpointError on non-finite features and DataError on an empty side of the split.
    """
    name = inputs.dataset.name
    if min(len(train_idx), len(test_idx)) == 0:
        raise DataError(
            f"{name} has {len(train_idx)} training and {len(test_idx)} test images, "
            "a linear probe needs both",
            fix="check the data set folder and its split",
        )
    classes, labels = np.unique(inputs.dataset.labels, return_inverse=True)
    train, test = (_side(inputs, labels, index) for index in (train_idx, test_idx))
    start = linear_init(train.x.shape[1], len(classes), "probe-init", spec.seed, name)
    heads = ProbeHeads(spec, torch.from_numpy(start).to(train.x))
    right = []
    with report.task(f"probe {name}", spec.epochs, "epochs") as advance:
        for epoch in range(spec.epochs):
            order = permutations(1, len(train_idx), "probe-order", spec.seed, name, epoch)[0]
            heads.train_epoch(train, torch.from_numpy(order).to(inputs.device))
            right.append(heads.correct(test))
            advance(1)
    return _records(spec, np.stack(right))


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

    def train_epoch(self, train: Side, order: Tensor) -> None:
        """One epoch over train in the given order (N,); the last batch may be smaller."""
        for batch in torch.split(order, self.spec.batch_size):
            self.step(train.x[batch], train.y[batch])

    def step(self, x: Tensor, y: Tensor) -> None:
        """torch.optim.SGD on the mean cross-entropy of x (m, D), y (m,), for every head."""
        spec, (weight_velocity, bias_velocity) = self.spec, self.velocity
        errors = torch.softmax(self.logits(x), dim=2) - self.targets[y][:, None]
        errors = errors.flatten(1).div_(len(y))
        weight_velocity.addmm_(x.mT, errors, beta=spec.momentum)
        weight_velocity.add_(self.weight, alpha=spec.weight_decay)
        bias_velocity.mul_(spec.momentum).add_(errors.sum(0))
        bias_velocity.add_(self.bias, alpha=spec.weight_decay)
        self.weight.addcmul_(weight_velocity, self.lr, value=-1)
        self.bias.addcmul_(bias_velocity, self.lr, value=-1)

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


def _side(inputs: Inputs, labels: Index, index: Index) -> Side:
    x = torch.from_numpy(inputs.features[index]).to(inputs.device)
    if not torch.isfinite(x).all():
        raise CheckpointError(
            f"features of {inputs.dataset.name} hold NaN or infinity",
            fix="check the checkpoint: its weights or normalization statistics are broken",
        )
    return Side(x, torch.from_numpy(labels[index]).to(inputs.device))


def _records(spec: ProbeSpec, right: NDArray[np.bool_]) -> ProbeRecords:
    """Records from the outcomes (epochs, L, N) after each epoch."""
    curve = right.mean(axis=2).T
    best = np.stack([right[epoch, lr] for lr, epoch in enumerate(curve.argmax(axis=1))])
    return ProbeRecords(np.array(spec.lrs), curve, right[-1], best)
