"""Linear heads for many episodes at once, trained by SGD on Gram matrices.

A head starts at weights W_0 and bias b_0. The gradient of the cross-entropy at support row x_i is
e_i x_i^T with e_i = softmax(logits) - onehot, so SGD never leaves the span of W_0 and the support:

    W_t = c_t W_0 + A_t^T S,   b_t = c_t b_0 + A_t^T 1,   logits on S = c_t Z_0 + K A_t

with S (n, D) the support, A_t (n, C), Z_0 = S W_0^T + b_0 and K = S S^T + 1 (the bias is a feature
that is always 1). A_t obeys the recurrence of protocols/heads/recurrence.py, row by row. Within a
chunk of steps, A is therefore its value at the start of the chunk, aged, plus each e_i times a
number that only its age decides: a step costs one small product, a softmax and a subtraction. This
is no approximation: it is torch.optim.SGD in another order of summation, for any n and D.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from fsbench.core.specs import HeadSpec
from protocols.heads.gram import Gram
from protocols.heads.recurrence import StepChunk, initial_weight_share, split_into_chunks


class TrainedHeads(NamedTuple):
    """E trained heads: position A (E, n, C), and the share c of the initial weights left."""

    position: Tensor
    share: float

    def logits(self, images: Gram) -> Tensor:
        """Return logits (E, m, C) of any m images."""
        return torch.baddbmm(images.untrained, images.kernel, self.position, beta=self.share)


def train_heads(support: Gram, labels: Tensor, orders: Tensor, spec: HeadSpec) -> TrainedHeads:
    """Train heads by spec.epochs epochs of SGD on the mean cross-entropy of mini-batches.

    support: of n images an episode, with themselves; labels (n,) in 0..C-1, shared by all episodes;
    orders (E, epochs, n): order of the support images in each epoch. All on one device.
    """
    training = _Training(support, labels)
    n_steps = -(-len(labels) // spec.batch_size) * spec.epochs
    shares = support.kernel.new_tensor(initial_weight_share(spec, n_steps))
    order = orders.flatten(1)
    for chunk in split_into_chunks(spec, len(labels), support.kernel):
        training.run(chunk, order[:, chunk.rows], shares[chunk.steps])
    return TrainedHeads(training.state[:, :, 0].contiguous(), float(shares[-1]))


class _Training:
    """The state of E heads in training: A and its velocity, (E, n, 2, C), both zero at first."""

    def __init__(self, support: Gram, labels: Tensor) -> None:
        episodes, n, n_classes = support.untrained.shape
        self.kernel, self.untrained = support.kernel.flatten(0, 1), support.untrained.flatten(0, 1)
        self.state = support.kernel.new_zeros(episodes, n, 2, n_classes)
        self.targets = torch.eye(n_classes).to(support.kernel)[labels]
        self.offsets = torch.arange(episodes, device=labels.device)[:, None] * n

    def run(self, chunk: StepChunk, rows: Tensor, shares: Tensor) -> None:
        """Take the chunk's steps on support rows (E, m); shares (m,): of W_0 left at each."""
        flat = (rows + self.offsets).flatten()
        kernel = self.kernel.index_select(0, flat).view(*rows.shape, -1)
        products = (kernel @ self.state.flatten(2)).view(*rows.shape, *self.state.shape[2:])
        logits = self.untrained.index_select(0, flat).view(*rows.shape, -1) * shares[:, None]
        logits.addcmul_(products[:, :, 0], chunk.ageing[0]).addcmul_(
            products[:, :, 1], chunk.ageing[1]
        )
        mix = kernel.gather(2, rows[:, None].expand(-1, rows.shape[1], -1)).mul_(chunk.mix)
        errors = _errors(chunk, logits, mix, self.targets[rows])
        self._age(chunk)
        arrived = (errors[:, :, None] * chunk.arrival).flatten(0, 1)
        self.state.flatten(0, 1).index_put_((flat,), arrived, accumulate=True)

    def _age(self, chunk: StepChunk) -> None:
        """Advance the state by the steps of the chunk, without new errors."""
        (pp, pv), (vp, vv) = chunk.carry
        position, velocity = self.state[:, :, 0], self.state[:, :, 1]
        before = position.clone()
        position.mul_(pp).add_(velocity, alpha=pv)
        velocity.mul_(vv).add_(before, alpha=vp)


def _errors(chunk: StepChunk, logits: Tensor, mix: Tensor, targets: Tensor) -> Tensor:
    """Return softmax - onehot (E, m, C) of each row at its step, given earlier errors."""
    errors = torch.empty_like(logits)
    for batch in chunk.batches:
        z = logits[:, batch]
        if batch.start:
            earlier = slice(batch.start)
            z = torch.baddbmm(z, mix[:, batch, earlier], errors[:, earlier])
        torch.sub(torch.softmax(z, dim=2), targets[:, batch], out=errors[:, batch])
    return errors
