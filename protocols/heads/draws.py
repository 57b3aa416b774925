"""Initial weights of linear heads and the order of their data, drawn by name.

Every draw comes from fsbench.core.seeding under (purpose, episode, stream), so it depends on no
block, shard, order of work, device or dtype.
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
    """Draw PyTorch's default init of nn.Linear(dim, n_classes): U(-1/sqrt(dim), 1/sqrt(dim)).

    Shape (dim + 1, n_classes): the weight, class dimension last, and the bias as last row.
    """
    drawn = uniforms((dim + 1, n_classes), *names)
    drawn *= 2 / np.sqrt(dim)
    drawn -= 1 / np.sqrt(dim)
    return drawn


def draw_untrained_heads(
    names: Names, indices: Sequence[int], dim: int, n_way: int, reference: Tensor
) -> UntrainedHeads:
    """Draw the untrained heads of these episodes for features of dimension `dim`.

    The weight is (E, padded_dim(dim), n_way), with zero rows as padding; reference: sets device
    and dtype.
    """
    weight = reference.new_zeros(len(indices), padded_dim(dim), n_way, device="cpu")
    bias = reference.new_zeros(len(indices), n_way, device="cpu")
    for row, i in enumerate(indices):
        drawn = torch.from_numpy(draw_linear_init(dim, n_way, *names, i, "head-init"))
        weight[row, :dim], bias[row] = drawn[:-1], drawn[-1]
    return UntrainedHeads(weight.to(reference.device), bias.to(reference.device))


def draw_orders(names: Names, indices: Sequence[int], epochs: int, n: int, device: str) -> Tensor:
    """Draw the order of the n support images in each epoch, (E, epochs, n)."""
    drawn = [permutations(epochs, n, *names, i, "head-order") for i in indices]
    return torch.from_numpy(np.stack(drawn)).to(device)
