"""How linear heads start and in which order they see their data: random draws by name.

All draws come from fsbench.core.seeding under (what for, which episode, which purpose), so they
depend
on no block, shard, order of work, device or dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.seeding import Name, permutations, uniforms
from protocols.heads.gram import UntrainedHeads, padded_dim

Names = tuple[Name, ...]


def draw_linear_init(dim: int, n_classes: int, *names: Name) -> NDArray[np.float64]:
    """PyTorch's default init of nn.Linear(dim, n_classes): U(-1/sqrt(dim), 1/sqrt(dim)).

    Shape (dim + 1, n_classes): the weight, class dimension last, and the bias as last row.
    """
    drawn = uniforms((dim + 1, n_classes), *names)
    drawn *= 2 / np.sqrt(dim)
    drawn -= 1 / np.sqrt(dim)
    return drawn


def draw_untrained_heads(
    names: Names, indices: Sequence[int], dim: int, n_way: int, like: Tensor
) -> UntrainedHeads:
    """The untrained heads of the given episodes for features of `dim` numbers.

    The weight is (E, padded(dim), n_way), its surplus rows zero; like: gives device and dtype.
    """
    weight = like.new_zeros(len(indices), padded_dim(dim), n_way, device="cpu")
    bias = like.new_zeros(len(indices), n_way, device="cpu")
    for row, i in enumerate(indices):
        drawn = torch.from_numpy(draw_linear_init(dim, n_way, *names, i, "head-init"))
        weight[row, :dim], bias[row] = drawn[:-1], drawn[-1]
    return UntrainedHeads(weight.to(like.device), bias.to(like.device))


def draw_orders(names: Names, indices: Sequence[int], epochs: int, n: int, device: str) -> Tensor:
    """Order of the n support images in each epoch, (E, epochs, n)."""
    drawn = [permutations(epochs, n, *names, i, "head-order") for i in indices]
    return torch.from_numpy(np.stack(drawn)).to(device)
