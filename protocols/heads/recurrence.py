"""SGD with momentum, dampening and weight decay as a linear recurrence, in float64 scalars.

One step of torch.optim.SGD on a coefficient a with velocity v and loss gradient g:

    v <- momentum * v + (1 - dampening) * (g + weight_decay * a)        first step: v <- g + ...
    a <- a - lr * v

Between gradients, (a, v) is multiplied by a constant 2 x 2 matrix, so the effect of a past gradient
on `a` depends on its age only. (PyTorch copies the first gradient into the momentum buffer
undamped.) Steps are taken in chunks, whose weights need no data and are computed once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.specs import HeadSpec

Array = NDArray[np.float64]


def transition_powers(spec: HeadSpec, n: int) -> Array:
    """Return M^0 .. M^n, (n + 1, 2, 2): the map of (a, v) over 0..n steps without a gradient."""
    damped = 1 - spec.dampening
    decay = damped * spec.weight_decay
    step = np.array([[1 - spec.lr * decay, -spec.lr * spec.momentum], [decay, spec.momentum]])
    matrices = [np.eye(2)]
    for _ in range(n):
        matrices.append(step @ matrices[-1])
    return np.array(matrices)


def step_responses(spec: HeadSpec, n: int) -> Array:
    """Return (n + 1, 2): (a, v) if a unit of velocity was added j = 0..n steps ago."""
    responses: Array = transition_powers(spec, n) @ np.array([-spec.lr, 1.0])
    return responses


def initial_weight_share(spec: HeadSpec, steps: int) -> Array:
    """Return (steps + 1,): the share of the initial weights left after each step."""
    shares, velocity = [1.0], 0.0
    for t in range(steps):
        pull = spec.weight_decay * shares[-1]
        velocity = pull if t == 0 else spec.momentum * velocity + (1 - spec.dampening) * pull
        shares.append(shares[-1] - spec.lr * velocity)
    return np.array(shares)


def step_of_position(spec: HeadSpec, n: int) -> NDArray[np.int64]:
    """Return (epochs * n,): the step that uses each place in the orders of all epochs."""
    in_epoch = np.arange(n) // spec.batch_size
    before = np.arange(spec.epochs) * (in_epoch[-1] + 1)
    positions: NDArray[np.int64] = np.add.outer(before, in_epoch).ravel()
    return positions


def gradient_gains(spec: HeadSpec, n: int) -> Array:
    """Return (epochs * n,): what the gradient of one place's loss adds to the velocity.

    The loss is a mean over the batch, and the last batch of an epoch may be smaller.
    """
    used = step_of_position(spec, n)
    size = np.bincount(used)[used]
    return np.where(used == 0, 1.0, 1 - spec.dampening) / size


CHUNK_STEPS = 16
"""Steps between two dense updates; at batch size 4 the products of the rows stay in cache."""


@dataclass(frozen=True, eq=False)
class StepChunk:
    """Consecutive steps, which use m rows; a row may come again in another epoch.

    rows: their places in the orders of all epochs, one after the other; batches: places of each
    step's rows in the chunk; steps (m,): step of each row since the start of training.
    mix (m, m): weight of row i's error in row j's logits; of use only where i's step precedes j's.
    ageing (2, m, 1): weights of position and velocity at the chunk's start, for row j's logits.
    arrival (m, 2, 1): weights of row i's error in position and velocity at the chunk's end.
    carry: 2 x 2 weights of position and velocity at the start in position and velocity at the end.
    """

    rows: slice
    batches: tuple[slice, ...]
    steps: list[int]
    mix: Tensor
    ageing: Tensor
    arrival: Tensor
    carry: list[list[float]]


def split_into_chunks(spec: HeadSpec, n: int, reference: Tensor) -> Iterator[StepChunk]:
    """Yield all steps of a training on n rows, in order; reference: sets dtype and device."""
    ages, after = transition_powers(spec, CHUNK_STEPS), step_responses(spec, CHUNK_STEPS)
    step, gain = step_of_position(spec, n), gradient_gains(spec, n)
    ends = np.flatnonzero(np.diff(step, append=-1)) + 1
    for first in range(0, len(ends), CHUNK_STEPS):
        bounds = np.r_[ends[first - 1] if first else 0, ends[first : first + CHUNK_STEPS]]
        rows = slice(int(bounds[0]), int(bounds[-1]))
        local = step[rows] - first
        age = np.maximum(local[:, None] - local - 1, 0)
        yield StepChunk(
            rows=rows,
            batches=_between(bounds - bounds[0]),
            steps=step[rows].tolist(),
            mix=reference.new_tensor(after[age, 0] * gain[rows]),
            ageing=reference.new_tensor(ages[local, 0].T[..., None]),
            arrival=reference.new_tensor((after[local[-1] - local] * gain[rows, None])[..., None]),
            carry=ages[local[-1] + 1].tolist(),
        )


def _between(bounds: NDArray[np.int64]) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in pairwise(bounds.tolist()))
