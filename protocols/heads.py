"""Linear heads for many episodes at once, trained by SGD on Gram matrices.

A head starts at weights W_0 and bias b_0. The gradient of the cross-entropy at support row x_i is
e_i x_i^T with e_i = softmax(logits) - onehot, so SGD never leaves the span of W_0 and the support:

    W_t = c_t W_0 + A_t^T S,   b_t = c_t b_0 + A_t^T 1,   logits on S = c_t Z_0 + K A_t

with S (n, D) the support, A_t (n, C), Z_0 = S W_0^T + b_0 and K = S S^T + 1 (the bias is a feature
that is always 1). A_t obeys the recurrence of protocols/recurrence.py, row by row. Within a chunk of
steps, A is therefore its value at the chunk's start, aged, plus each e_i times a number that only
its age decides: a step costs one small product, a softmax and a subtraction. No approximation: it
is torch.optim.SGD in another order of summation, for any n and D.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.specs import HeadSpec
from protocols import recurrence

CHUNK_STEPS = 16
"""Steps between two dense updates of A: 64 rows of the Gram matrix stay in a core's cache."""


class Heads(NamedTuple):
    """E linear heads: weight (E, D, C) with the class dimension last, bias (E, C)."""

    weight: Tensor
    bias: Tensor

    def logits(self, features: Tensor) -> Tensor:
        """(E, m, C) of features (E, m, D)."""
        return torch.baddbmm(self.bias[:, None], features, self.weight)


def train(support: Tensor, labels: Tensor, start: Heads, orders: Tensor, spec: HeadSpec) -> Heads:
    """Heads after spec.epochs epochs of SGD on the mean cross-entropy of mini-batches.

    support (E, n, D); labels (n,) in 0..C-1, shared by all episodes; orders (E, epochs, n): the
    order of the support rows in each epoch. All on one device, floats of one dtype.
    """
    n, n_classes = support.shape[1], start.bias.shape[1]
    kernel = torch.baddbmm(support.new_ones(1, 1, 1), support, support.mT)
    training = _Training(kernel, start.logits(support), torch.eye(n_classes).to(support)[labels])
    steps = -(-n // spec.batch_size)
    left = recurrence.shrinkage(spec, steps * spec.epochs)
    later = _chunks(spec, n, 1, support)
    for epoch in range(spec.epochs):
        chunks = later if epoch else _chunks(spec, n, 0, support)
        for chunk in chunks:
            now = epoch * steps + chunk.steps
            training.run(chunk, orders[:, epoch, chunk.rows], support.new_tensor(left[now]))
    A, share = training.position, float(left[-1])
    weight = torch.baddbmm(start.weight, support.mT, A, beta=share)
    return Heads(weight, share * start.bias + A.sum(1))


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Consecutive steps of an epoch, over m of its rows; all that does not depend on the data.

    mix (m, m): weight of row i's error in row j's logits, 0 unless i's step precedes j's;
    ageing (m, 2): weights of position and velocity at the chunk's start in A at row j's step;
    arrival (m, 2): weights of row i's error in position and velocity at the chunk's end;
    carry (2, 2): weights of position and velocity at the start in both at the end.
    """

    rows: slice
    steps: NDArray[np.int64]
    batch_size: int
    mix: Tensor
    ageing: Tensor
    arrival: Tensor
    carry: NDArray[np.float64]


def _chunks(spec: HeadSpec, n: int, epoch: int, like: Tensor) -> list[_Chunk]:
    """The chunks of one epoch; only epoch 0 has the undamped first step."""
    per_chunk = CHUNK_STEPS * spec.batch_size
    ages, after = recurrence.powers(spec, CHUNK_STEPS), recurrence.responses(spec, CHUNK_STEPS)
    step = np.arange(n) // spec.batch_size
    gain = recurrence.gains(spec, step + epoch * (step[-1] + 1), n)
    found = []
    for low in range(0, n, per_chunk):
        rows = slice(low, min(low + per_chunk, n))
        local = step[rows] - step[low]
        age = local[:, None] - local - 1
        mix = np.where(age >= 0, after[np.maximum(age, 0), 0] * gain[rows], 0.0)
        arrival = after[local[-1] - local] * gain[rows, None]
        tensors = (like.new_tensor(x) for x in (mix, ages[local, 0], arrival))
        found.append(_Chunk(rows, step[rows], spec.batch_size, *tensors, ages[local[-1] + 1]))
    return found


class _Training:
    """The state of E heads in training: position A and velocity (E, n, C), both zero at first."""

    def __init__(self, kernel: Tensor, untrained: Tensor, targets: Tensor) -> None:
        episodes, n, _ = kernel.shape
        self.kernel, self.untrained, self.targets = kernel.flatten(0, 1), untrained, targets
        self.position, self.velocity = torch.zeros_like(untrained), torch.zeros_like(untrained)
        self.offsets = torch.arange(episodes, device=kernel.device)[:, None] * n

    def run(self, chunk: _Chunk, rows: Tensor, share: Tensor) -> None:
        """Take the chunk's steps on support rows (E, m); share (m,): of W_0 left at each."""
        flat = (rows + self.offsets).flatten()
        kernel = self.kernel[flat].unflatten(0, rows.shape)
        carried = kernel @ torch.cat((self.position, self.velocity), dim=2)
        position, velocity = carried.chunk(2, dim=2)
        logits = self.untrained.flatten(0, 1)[flat].view_as(position) * share[:, None]
        logits.addcmul_(position, chunk.ageing[:, :1]).addcmul_(velocity, chunk.ageing[:, 1:])
        mix = kernel.gather(2, rows[:, None].expand(-1, rows.shape[1], -1)).mul_(chunk.mix)
        errors = _errors(logits, mix, self.targets[rows], chunk.batch_size)
        self._advance(chunk, errors, flat)

    def _advance(self, chunk: _Chunk, errors: Tensor, flat: Tensor) -> None:
        """Position and velocity at the end of the chunk; a chunk uses each row at most once."""
        (pp, pv), (vp, vv) = chunk.carry.tolist()
        position = (self.position * pp).add_(self.velocity, alpha=pv)
        self.velocity.mul_(vv).add_(self.position, alpha=vp)
        self.position = position
        for state, weights in zip((position, self.velocity), chunk.arrival.mT, strict=True):
            state.flatten(0, 1)[flat] += (errors * weights[:, None]).flatten(0, 1)


def _errors(logits: Tensor, mix: Tensor, targets: Tensor, batch_size: int) -> Tensor:
    """softmax - onehot (E, m, C) of each row at its own step, from the errors of earlier steps."""
    errors = torch.empty_like(logits)
    for low in range(0, logits.shape[1], batch_size):
        batch = slice(low, low + batch_size)
        z = logits[:, batch]
        if low:
            z = torch.baddbmm(z, mix[:, batch, :low], errors[:, :low])
        torch.sub(torch.softmax(z, dim=2), targets[:, batch], out=errors[:, batch])
    return errors
