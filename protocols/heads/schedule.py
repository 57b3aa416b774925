"""The steps of head training in chunks, with all weights that need no data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.specs import HeadSpec
from protocols.heads import recurrence

CHUNK_STEPS = 16
"""Steps between two dense updates: at batch size 4, the rows' products stay in a core's cache."""


@dataclass(frozen=True, eq=False)
class Chunk:
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


def chunks(spec: HeadSpec, n: int, like: Tensor) -> Iterator[Chunk]:
    """All steps of a training on n rows, in order; like: gives dtype and device."""
    ages, after = recurrence.powers(spec, CHUNK_STEPS), recurrence.responses(spec, CHUNK_STEPS)
    step, gain = recurrence.steps(spec, n), recurrence.gains(spec, n)
    ends = np.flatnonzero(np.diff(step, append=-1)) + 1
    for first in range(0, len(ends), CHUNK_STEPS):
        bounds = np.r_[ends[first - 1] if first else 0, ends[first : first + CHUNK_STEPS]]
        rows = slice(int(bounds[0]), int(bounds[-1]))
        local = step[rows] - first
        age = np.maximum(local[:, None] - local - 1, 0)
        yield Chunk(
            rows=rows,
            batches=_between(bounds - bounds[0]),
            steps=step[rows].tolist(),
            mix=like.new_tensor(after[age, 0] * gain[rows]),
            ageing=like.new_tensor(ages[local, 0].T[..., None]),
            arrival=like.new_tensor((after[local[-1] - local] * gain[rows, None])[..., None]),
            carry=ages[local[-1] + 1].tolist(),
        )


def _between(bounds: NDArray[np.int64]) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in pairwise(bounds.tolist()))
