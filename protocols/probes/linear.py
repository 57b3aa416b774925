"""Linear probe: a linear classifier on all frozen features, several learning rates at once.

Source: SEAL, section 4.2: SGD with momentum 0.9, weight decay 1e-4, constant learning rate from
{0.1, 0.01, 0.001}, 120 epochs, highest test accuracy reported. The paper picks learning rate and
epoch on the test set; so the last epoch is recorded too, and, where the spec holds out a part of
the training set, the score of every rate on it: what is chosen there has seen no test image. The
heads of all learning rates share initial weights and batches; their columns form one matrix, so a
step is two matrix products for all of them.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import ProbeRecords
from fsbench.core.seeding import permutations
from fsbench.core.specs import ProbeSpec, TestScore
from fsbench.data.splits import hold_out
from protocols.base import ImageIndices, Inputs, SplitFeatures, split_features
from protocols.heads.gram import draw_linear_init

TEST_ROWS = 4096
"""Test images per matrix product."""
GATHERED = 16
"""Batches whose features are gathered at once."""


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
    def train_epoch(self, train: SplitFeatures, order: Tensor, factor: float = 1.0) -> None:
        """Train one epoch in this order (N,); the last batch may be smaller.

        factor: multiplies every learning rate.
        """
        lr, size = self.lr * factor, self.spec.batch_size
        for rows in torch.split(order, GATHERED * size):
            features, targets = train.x.index_select(0, rows), self.targets[train.y[rows]]
            for x, batch_targets in zip(
                torch.split(features, size), torch.split(targets, size), strict=True
            ):
                self.step(x, batch_targets, lr)

    def step(self, x: Tensor, targets: Tensor, lr: Tensor) -> None:
        """Take a step of torch.optim.SGD on the mean cross-entropy of x (m, D), targets (m, C)."""
        errors = torch.softmax(self.few_logits(x), dim=2).sub_(targets[:, None])
        errors = errors.flatten(1).div_(len(x))
        self.weight_velocity.addmm_(x.mT, errors, beta=self.spec.momentum)
        self.bias_velocity.mul_(self.spec.momentum).add_(errors.sum(0))
        self.velocity.add_(self.all, alpha=self.spec.weight_decay)
        self.all.addcmul_(self.velocity, lr, value=-1)

    def logits(self, x: Tensor) -> Tensor:
        """Return logits (m, L, C) of features (m, D)."""
        return torch.addmm(self.bias, x, self.weight).view(len(x), -1, self.n_classes)

    def few_logits(self, x: Tensor) -> Tensor:
        """Return the logits of few images as a product of transposes, up to 20 % faster on CPUs."""
        columns = torch.addmm(self.bias[:, None], self.weight.mT, x.mT)
        return columns.mT.reshape(len(x), -1, self.n_classes)

    @torch.inference_mode()
    def correct(self, test: SplitFeatures) -> NDArray[np.bool_]:
        """Return (L, N): top-1 is correct and every logit of the image is finite."""
        parts = []
        for x, y in zip(
            torch.split(test.x, TEST_ROWS), torch.split(test.y, TEST_ROWS), strict=True
        ):
            logits = self.logits(x)
            finite = logits.amax(dim=2).isfinite() & logits.amin(dim=2).isfinite()
            parts.append(((logits.argmax(dim=2) == y[:, None]) & finite).mT.cpu().numpy())
        return np.concatenate(parts, axis=1)


def evaluate_linear_probe(
    inputs: Inputs,
    spec: ProbeSpec,
    train_idx: ImageIndices,
    test_idx: ImageIndices,
    report: Reporter = SILENT,
) -> ProbeRecords:
    """Train on the images train_idx and test on test_idx, whose order the records keep.

    A learning rate that diverges stays in the records, its test images counted as wrong. Raise
    CheckpointError on non-finite features, DataError on an empty side of the split.
    """
    name = inputs.dataset.name
    train, test, n_classes = split_features(inputs, train_idx, test_idx)
    start = draw_linear_init(train.x.shape[1], n_classes, "probe-init", spec.seed, name)
    initial = torch.from_numpy(start).to(train.x)
    runs = [ProbeTraining("probe-order", spec, name, torch.arange(len(train_idx)), initial)]
    if spec.held_out is not None:
        rows, held_rows = map(torch.from_numpy, hold_out(inputs.dataset, train_idx, spec.held_out))
        runs.append(ProbeTraining("held-out-order", spec, name, rows, initial))
        held_out = train.take(held_rows)
    right, scores = [], []
    with report.task(f"{name}:probe", spec.epochs, "epochs") as advance:
        for epoch in range(spec.epochs):
            for run in runs:
                run.epoch(epoch, train)
            right.append(runs[0].heads.correct(test))
            scores += [score_held_out(run.heads, held_out, spec.score) for run in runs[1:]]
            advance(1)
    return _records(spec, np.stack(right), np.array(scores).T)


def score_held_out(heads: ProbeHeads, part: SplitFeatures, score: TestScore) -> NDArray[np.float64]:
    """Return the score (L,) of heads on the held-out part of the training images."""
    right, y = heads.correct(part), part.y.cpu().numpy()
    groups = [y == c for c in np.unique(y)] if score == "balanced_accuracy" else [y >= 0]
    return np.asarray(np.mean([right[:, group].mean(axis=1) for group in groups], axis=0))


class ProbeTraining:
    """Heads trained on some rows of the training images, with their own order of batches."""

    def __init__(self, order: str, spec: ProbeSpec, name: str, rows: Tensor, start: Tensor) -> None:
        self.names, self.spec, self.rows = (order, spec.seed, name), spec, rows
        self.heads = ProbeHeads(spec, start)

    def epoch(self, number: int, features: SplitFeatures) -> None:
        """Train one epoch on the rows of these features of all training images."""
        order = permutations(1, len(self.rows), *self.names, number)[0]
        rows = self.rows[torch.from_numpy(order)].to(features.y.device)
        self.heads.train_epoch(features, rows, learning_rate_factor(self.spec, number))


def learning_rate_factor(spec: ProbeSpec, epoch: int) -> float:
    """Return the factor on the learning rate; cosine as CosineAnnealingLR, stepped per epoch."""
    if spec.schedule == "constant":
        return 1.0
    return (1 + math.cos(math.pi * epoch / spec.epochs)) / 2


def _records(
    spec: ProbeSpec, right: NDArray[np.bool_], scores: NDArray[np.float64]
) -> ProbeRecords:
    """Build records from outcomes (epochs, L, N) and, if there are any, held-out scores."""
    curve, rates = right.mean(axis=2).T, np.arange(len(spec.lrs))
    choice: dict[str, NDArray[Any]] = {}
    if spec.epoch == "best":
        choice = {"held_out_curve": scores, "chosen": right[scores.argmax(axis=1), rates]}
    elif spec.held_out is not None:
        choice = {"held_out": scores[:, -1]}
    best = right[curve.argmax(axis=1), rates]
    return ProbeRecords(np.array(spec.lrs), curve, right[-1], best, **choice)
