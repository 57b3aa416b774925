"""The steps of an epoch of head training, in chunks, with all weights that need no data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from fsbench.specs import HeadSpec
from protocols import recurrence

CHUNK_STEPS = 16
"""Steps between two dense updates: at batch size 4, the rows' products stay in a core's cache."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive steps that use m support rows, each at most once.

    rows: their places in the order of the epoch; batches: the same by step, counted from the
    chunk's first row; steps (m,): step of each row since the start of the epoch.
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


def chunks(spec: HeadSpec, n: int, epoch: int, like: Tensor) -> list[Chunk]:
    """The chunks of an epoch over n rows; the undamped first step makes epoch 0 differ.

    like: gives dtype and device; the weights are computed in float64.
    """
    ages, after = recurrence.powers(spec, CHUNK_STEPS), recurrence.responses(spec, CHUNK_STEPS)
    step = np.arange(n) // spec.batch_size
    gain = recurrence.gains(spec, step + epoch * (step[-1] + 1), n)
    found = []
    for low in range(0, n, CHUNK_STEPS * spec.batch_size):
        rows = slice(low, min(low + CHUNK_STEPS * spec.batch_size, n))
        local = step[rows] - step[low]
        age = local[:, None] - local - 1
        mix = after[np.maximum(age, 0), 0] * gain[rows]
        arrival = after[local[-1] - local] * gain[rows, None]
        found.append(
            Chunk(
                rows=rows,
                batches=_batches(len(local), spec.batch_size),
                steps=step[rows].tolist(),
                mix=like.new_tensor(mix),
                ageing=like.new_tensor(ages[local, 0].T[..., None]),
                arrival=like.new_tensor(arrival[..., None]),
                carry=ages[local[-1] + 1].tolist(),
            )
        )
    return found


def _batches(m: int, size: int) -> tuple[slice, ...]:
    return tuple(slice(low, min(low + size, m)) for low in range(0, m, size))
