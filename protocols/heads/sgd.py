"""Linear heads for many episodes at once, trained by SGD on Gram matrices.

A head starts at weights W_0 and bias b_0. The gradient of the cross-entropy at support row x_i is
e_i x_i^T with e_i = softmax(logits) - onehot, so SGD never leaves the span of W_0 and the support:

    W_t = c_t W_0 + A_t^T S,   b_t = c_t b_0 + A_t^T 1,   logits on S = c_t Z_0 + K A_t

with S (n, D) the support, A_t (n, C), Z_0 = S W_0^T + b_0 and K = S S^T + 1 (the bias is a feature
that is always 1). A_t obeys the recurrence of protocols/heads/recurrence.py, row by row. Within a
chunk of steps, A is therefore its value at the start of the chunk, aged, plus each e_i times a
number that only its age decides: a step costs one small product, a softmax and an addition. This
is no approximation: it is torch.optim.SGD in another order of summation, for any n and D.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fsbench.core.specs import HeadSpec
from protocols.heads.gram import Gram
from protocols.heads.recurrence import (
    StepChunk,
    initial_weight_share,
    split_into_chunks,
    step_of_position,
)


class TrainedHeads(NamedTuple):
    """E trained heads: position A (E, C, n), and the share c of the initial weights left."""

    position: Tensor
    share: float

    def logits(self, images: Gram) -> Tensor:
        """Return logits (E, m, C) of any m images."""
        logits = torch.baddbmm(images.untrained, self.position, images.kernel, beta=self.share)
        return logits.mT.contiguous()


def train_heads(support: Gram, labels: Tensor, orders: Tensor, spec: HeadSpec) -> TrainedHeads:
    """Train heads by spec.epochs epochs of SGD on the mean cross-entropy of mini-batches.

    support: of n images an episode, with themselves; labels (n,) in 0..C-1, shared by all episodes;
    orders (E, epochs, n): order of the support images in each epoch. All on one device.
    """
    training = _Training(support, labels)
    step = step_of_position(spec, len(labels))
    left = initial_weight_share(spec, int(step[-1]) + 1)
    shares, order = support.kernel.new_tensor(left[step]), orders.flatten(1)
    for rows, chunk in split_into_chunks(spec, len(labels), support.kernel):
        training.run(chunk, order[:, rows], shares[rows])
    return TrainedHeads(training.position.transpose(0, 1), float(left[-1]))


class _Training:
    """The state of E heads in training: A and its velocity, (C, E, n) each, both zero at first.

    The class comes first and the image last, so every operation runs along many images.
    """

    def __init__(self, support: Gram, labels: Tensor) -> None:
        episodes, n_classes, n = support.untrained.shape
        self.kernel = support.kernel.contiguous()
        self.untrained = support.untrained.transpose(0, 1).flatten(1)
        self.targets = torch.eye(n_classes).to(self.kernel)[:, labels]
        self.state = self.kernel.new_zeros(2, n_classes, episodes, n)
        self.position, self.velocity = self.state
        self.offsets = torch.arange(episodes, device=labels.device)[:, None] * n

    def run(self, chunk: StepChunk, rows: Tensor, shares: Tensor) -> None:
        """Take the chunk's steps on support rows (E, m); shares (m,): of W_0 left at each."""
        flat = (rows + self.offsets).flatten()
        kernel, mix = self._select(rows, flat)
        position, velocity = (self.state.flatten(0, 1).transpose(0, 1) @ kernel).chunk(2, dim=1)
        logits = self.untrained.index_select(1, flat).view(-1, *rows.shape).mul_(shares)
        logits = logits.transpose(0, 1).addcmul_(position, chunk.ageing[0])
        logits.addcmul_(velocity, chunk.ageing[1])
        errors = self.targets.index_select(1, rows.flatten()).view(-1, *rows.shape).neg_()
        _add_probabilities(errors, chunk.batches, logits, mix.mul_(chunk.mix))
        self._age(chunk)
        arrived = errors * chunk.arrival
        _add_columns(self.state.view(2 * len(errors), -1), flat, arrived.view(2 * len(errors), -1))

    def _select(self, rows: Tensor, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Return the kernel of all images with these rows (E, n, m), and among rows (E, m, m).

        The larger of both is copied by whole rows, which is much faster than by single numbers.
        """
        n, m = self.kernel.shape[2], rows.shape[1]
        if m < n:
            kernel = self.kernel.flatten(0, 1).index_select(0, flat).view(-1, m, n)
            return kernel.mT, kernel.gather(2, rows[:, None].expand(-1, m, -1))
        kernel = self.kernel.gather(2, rows[:, None].expand(-1, n, -1))
        return kernel, kernel.flatten(0, 1).index_select(0, flat).view(-1, m, m)

    def _age(self, chunk: StepChunk) -> None:
        """Advance the state by the steps of the chunk, without new errors."""
        (pp, pv), (vp, vv) = chunk.carry
        before = self.position.clone()
        self.position.mul_(pp).add_(self.velocity, alpha=pv)
        self.velocity.mul_(vv).add_(before, alpha=vp)


def _add_probabilities(errors: Tensor, batches: Sequence[int], logits: Tensor, mix: Tensor) -> None:
    """Turn errors (C, E, m) from -onehot to softmax - onehot, batch by batch.

    logits (E, C, m): of each row at its step without the errors of the chunk; mix (E, m, m): weight
    of the errors of earlier rows (last) in them.
    """
    earlier, start = errors.transpose(0, 1), 0
    parts = (whole.split_with_sizes(batches, 2) for whole in (logits, mix.mT, errors))
    for z, weights, error in zip(*parts, strict=True):
        if start:
            z = torch.baddbmm(z, earlier.narrow(2, 0, start), weights.narrow(1, 0, start))
        error += torch.softmax(z.transpose(0, 1), dim=0)
        start += error.shape[2]


def _add_columns(state: Tensor, index: Tensor, values: Tensor) -> None:
    """Add columns of values to the columns of the state with these indices, which may repeat."""
    if state.device.type == "cpu":
        state.index_add_(1, index, values)
    else:  # index_add_ has no fixed order of summation there
        state.T.index_put_((index,), values.T, accumulate=True)
