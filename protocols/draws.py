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

Names = tuple[Name, ...]


def linear_init(dim: int, n_classes: int, *names: Name) -> NDArray[np.float64]:
    """PyTorch's default init of nn.Linear(dim, n_classes): U(-1/sqrt(dim), 1/sqrt(dim)).

    Shape (dim + 1, n_classes): the weight, class dimension last, and the bias as last row.
    """
    unit = uniforms((n_classes * (dim + 1),), *names)
    weight, bias = unit[: n_classes * dim].reshape(n_classes, dim), unit[n_classes * dim :]
    drawn: NDArray[np.float64] = (2 * np.vstack([weight.T, bias]) - 1) / np.sqrt(dim)
    return drawn


def untrained(
    names: Names, indices: Sequence[int], dim: int, n_way: int, like: Tensor
) -> tuple[Tensor, Tensor]:
    """Weight (E, P, n_way) and bias (E, n_way) of the heads of the given episodes.

    dim: the true feature dimension; like (E, images, P): gives dtype, device and the padded
    dimension P >= dim, whose surplus rows are zero.
    """
    both = np.zeros((len(indices), like.shape[2] + 1, n_way))
    for place, i in zip(both, indices, strict=True):
        drawn = linear_init(dim, n_way, *names, i, "head-init")
        place[:dim], place[-1] = drawn[:-1], drawn[-1]
    tensor = torch.from_numpy(both).to(like)
    return tensor[:, :-1].contiguous(), tensor[:, -1].contiguous()


def orders(names: Names, indices: Sequence[int], epochs: int, like: Tensor) -> Tensor:
    """Order of the support rows in each epoch, (E, epochs, n), on the device of like (E, n, D)."""
    n = like.shape[1]
    drawn = [permutations(epochs, n, *names, i, "head-order") for i in indices]
    return torch.from_numpy(np.stack(drawn)).to(like.device)
