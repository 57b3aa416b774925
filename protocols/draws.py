"""How linear heads start and in which order they see their data: random draws by name.

All draws come from fsbench.seeding under (what for, which episode, which purpose), so they depend
on no block, shard, order of work, device or dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.seeding import Name, permutations, uniforms
from protocols.gram import Start, padded

Names = tuple[Name, ...]


def linear_init(dim: int, n_classes: int, *names: Name) -> NDArray[np.float64]:
    """PyTorch's default init of nn.Linear(dim, n_classes): U(-1/sqrt(dim), 1/sqrt(dim)).

    Shape (dim + 1, n_classes): the weight, class dimension last, and the bias as last row.
    """
    unit = uniforms((n_classes * (dim + 1),), *names)
    unit *= 2 / np.sqrt(dim)
    unit -= 1 / np.sqrt(dim)
    found = np.empty((dim + 1, n_classes))
    found[:-1] = unit[: n_classes * dim].reshape(n_classes, dim).T
    found[-1] = unit[n_classes * dim :]
    return found


def untrained(names: Names, indices: Sequence[int], dim: int, n_way: int, like: Tensor) -> Start:
    """The untrained heads of the given episodes for features of `dim` numbers.

    The weight is (E, padded(dim), n_way), its surplus rows zero; like: gives device and dtype.
    """
    both = np.zeros((len(indices), padded(dim) + 1, n_way))
    for place, i in zip(both, indices, strict=True):
        drawn = linear_init(dim, n_way, *names, i, "head-init")
        place[:dim], place[-1] = drawn[:-1], drawn[-1]
    tensor = torch.from_numpy(both).to(like)
    return Start(tensor[:, :-1].contiguous(), tensor[:, -1].contiguous())


def orders(names: Names, indices: Sequence[int], epochs: int, n: int, device: str) -> Tensor:
    """Order of the n support images in each epoch, (E, epochs, n)."""
    drawn = [permutations(epochs, n, *names, i, "head-order") for i in indices]
    return torch.from_numpy(np.stack(drawn)).to(device)
