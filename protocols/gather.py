"""From cached features of a data set to the support and query tensors of a block of episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.data.episodes import Episode
from protocols.base import Inputs

ALIGNMENT = 16
"""Features are padded with zeros to a multiple of this: each row starts at an aligned address."""


def padded(dim: int) -> int:
    """The next multiple of ALIGNMENT."""
    return -(-dim // ALIGNMENT) * ALIGNMENT


def support_and_query(
    inputs: Inputs, episodes: Sequence[Episode], dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Features (E, n_way * k_shot, P), (E, n_way * n_query, P), class by class, D padded to P."""
    images = [episode.images(inputs.dataset.by_class) for episode in episodes]
    support, query = (np.stack(part).reshape(len(images), -1) for part in zip(*images, strict=True))
    return (
        rows(inputs.features, support).to(inputs.device, dtype),
        rows(inputs.features, query).to(inputs.device, dtype),
    )


def rows(features: NDArray[np.float32], index: NDArray[np.int64]) -> Tensor:
    """Features (*index.shape, P) of the images in `index`."""
    dim = features.shape[1]
    found = np.zeros((*index.shape, padded(dim)), dtype=features.dtype)
    found[..., :dim] = features[index]
    return torch.from_numpy(found)
