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
"""Most steps between two dense updates; at batch size 4 the products of the rows stay in cache."""


@dataclass(frozen=True, eq=False)
class StepChunk:
    """Consecutive steps, which use m rows; a row may come again in another epoch.

    batches: numbers of rows of the steps.
    mix (m, m): weight of row i's error in row j's logits; of use only where i's step precedes j's.
    ageing (2, m): weights of position and velocity at the chunk's start, for row j's logits.
    arrival (2, 1, 1, m): weights of row i's error in position and velocity at the chunk's end.
    carry: 2 x 2 weights of position and velocity at the start in position and velocity at the end.
    """

    batches: tuple[int, ...]
    mix: Tensor
    ageing: Tensor
    arrival: Tensor
    carry: list[list[float]]


def split_into_chunks(
    spec: HeadSpec, n: int, reference: Tensor
) -> Iterator[tuple[slice, StepChunk]]:
    """Yield all steps of a training on n rows, in order, and the places of their rows.

    Places count through the orders of all epochs; reference: sets dtype and device. A chunk is
    whole epochs or an equal part of one, so a few chunks come again and again.
    """
    step, gain = step_of_position(spec, n), gradient_gains(spec, n)
    per_epoch = -(-n // spec.batch_size)
    if per_epoch < CHUNK_STEPS:
        firsts = np.arange(0, spec.epochs * per_epoch, per_epoch * (CHUNK_STEPS // per_epoch))
    else:
        parts = -(-per_epoch // CHUNK_STEPS)
        firsts = np.arange(spec.epochs * parts) * per_epoch // parts
    chunks: dict[tuple[bytes, bytes], StepChunk] = {}
    for low, high in pairwise([*np.searchsorted(step, firsts).tolist(), len(step)]):
        local, gains = step[low:high] - step[low], gain[low:high]
        key = local.tobytes(), gains.tobytes()
        if key not in chunks:
            chunks[key] = weigh_steps(spec, local, gains, reference)
        yield slice(low, high), chunks[key]


def weigh_steps(
    spec: HeadSpec, step: NDArray[np.int64], gain: Array, reference: Tensor
) -> StepChunk:
    """Return the chunk of m rows with these gains (m,), used at these steps (m,) from 0 on."""
    last = int(step[-1])
    ages, after = transition_powers(spec, last + 1), step_responses(spec, last)
    age = np.maximum(step[:, None] - step - 1, 0)
    arrival = (after[last - step].T * gain)[:, None, None]
    return StepChunk(
        batches=tuple(np.bincount(step).tolist()),
        mix=reference.new_tensor(after[age, 0] * gain),
        ageing=reference.new_tensor(ages[step, 0].T).contiguous(),
        arrival=reference.new_tensor(arrival).contiguous(),
        carry=ages[-1].tolist(),
    )
