"""Linear probe: a linear classifier on all frozen features, several learning rates side by side.

Source: protocol.md 4 (SEAL 4.2): SGD momentum 0.9, weight decay 1e-4, constant learning rate from
{0.1, 0.01, 0.001}, 120 epochs, highest test accuracy reported. The paper's learning rate and epoch
are picked on test, so the last epoch is recorded beside them, and, where the spec holds a part of
train out, how the rates do on it: the rate chosen there has seen no test image. The heads of all
learning rates share their init and the order of batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import ProbeRecords
from fsbench.core.seeding import permutations
from fsbench.core.specs import ProbeSpec
from fsbench.data.splits import held_out
from protocols.base import Inputs
from protocols.heads.draws import linear_init
from protocols.probes.heads import ProbeHeads
from protocols.probes.sides import Index, Side, on_device, sides

Views = Callable[[int], NDArray[np.float32]]
"""Epoch -> features (N_train, D) of a random view of every training image."""


def evaluate(
    inputs: Inputs,
    spec: ProbeSpec,
    train_idx: Index,
    test_idx: Index,
    report: Reporter = SILENT,
    views: Views | None = None,
) -> ProbeRecords:
    """Train on the images train_idx, test on test_idx (whose order the records keep).

    views: what to train on where the spec augments; the centre crops otherwise. A learning rate
    that diverges stays in the records, its test images counted as wrong. Raises CheckpointError on
    non-finite features and DataError on an empty side of the split.
    """
    name = inputs.dataset.name
    train, test, n_classes = sides(inputs, train_idx, test_idx)
    runs = [Run("probe-order", spec, name, n_classes, torch.arange(len(train_idx)), train)]
    if spec.held_out is not None:
        kept, held = map(torch.from_numpy, held_out(inputs.dataset, train_idx, spec.held_out))
        runs.append(Run("held-out-order", spec, name, n_classes, kept, train))
    right = []
    with report.task(f"probe {name}", spec.epochs, "epochs") as advance:
        for epoch in range(spec.epochs):
            seen = Side(on_device(inputs, views(epoch)), train.y) if views else train
            for run in runs:
                run.epoch(epoch, seen)
            right.append(runs[0].heads.correct(test))
            advance(1)
    chosen_on = None if spec.held_out is None else runs[1].heads.correct(train.take(held))
    return _records(spec, np.stack(right), chosen_on)


class Run:
    """Heads trained on some rows of the training images, in an order of their own."""

    def __init__(
        self, order: str, spec: ProbeSpec, name: str, n_classes: int, rows: Tensor, train: Side
    ) -> None:
        self.names, self.spec, self.rows = (order, spec.seed, name), spec, rows
        start = linear_init(train.x.shape[1], n_classes, "probe-init", spec.seed, name)
        self.heads = ProbeHeads(spec, torch.from_numpy(start).to(train.x))

    def epoch(self, number: int, seen: Side) -> None:
        """One epoch on features of all training images, of which the rows are used."""
        order = permutations(1, len(self.rows), *self.names, number)[0]
        rows = self.rows[torch.from_numpy(order)].to(seen.y.device)
        self.heads.train_epoch(seen, rows, rate_factor(self.spec, number))


def rate_factor(spec: ProbeSpec, epoch: int) -> float:
    """On the learning rate in an epoch; cosine as torch's CosineAnnealingLR, stepped each epoch."""
    if spec.schedule == "constant":
        return 1.0
    return (1 + math.cos(math.pi * epoch / spec.epochs)) / 2


def _records(
    spec: ProbeSpec, right: NDArray[np.bool_], chosen_on: NDArray[np.bool_] | None
) -> ProbeRecords:
    """From the outcomes (epochs, L, N) after each epoch, and those on the held-out part (L, M)."""
    curve = right.mean(axis=2).T
    best = np.stack([right[epoch, lr] for lr, epoch in enumerate(curve.argmax(axis=1))])
    honest = None if chosen_on is None else chosen_on.mean(axis=1)
    return ProbeRecords(np.array(spec.lrs), curve, right[-1], best, honest)
