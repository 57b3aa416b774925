"""From cached features to inner products: all that training and testing heads needs of them.

Features are gathered a few episodes at a time, into memory that a core's cache can hold; after that
the feature dimension is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from fsbench.data.episodes import Episode
from protocols.base import Inputs

ALIGNMENT = 16
"""Features are padded with zeros to a multiple of this: each row starts at an aligned address."""

SLICE_BYTES = 4 * 2**20
"""Features in memory at once: as many episodes as fit, at least one."""


class UntrainedHeads(NamedTuple):
    """Untrained linear heads: weight (E, D, C), class dimension last, and bias (E, C)."""

    weight: Tensor
    bias: Tensor


class Gram(NamedTuple):
    """m images of each of E episodes, as linear heads on n support images see them.

    kernel (E, m, n): inner products with the support, plus 1 for the bias; untrained (E, m, C):
    logits of the heads before training.
    """

    kernel: Tensor
    untrained: Tensor


def build_gram(images: Tensor, support: Tensor, start: UntrainedHeads) -> Gram:
    """Of images (E, m, D) and support (E, n, D)."""
    kernel = torch.baddbmm(support.new_ones(1, 1, 1), images, support.mT)
    return Gram(kernel, torch.baddbmm(start.bias[:, None], images, start.weight))


def support_and_query(
    inputs: Inputs, episodes: Sequence[Episode], start: UntrainedHeads
) -> tuple[Gram, Gram]:
    """The support (m = n) and the query images of the episodes, class by class.

    start: the untrained heads; they give device and dtype, and their D is padded(D).
    """
    images = [episode.images(inputs.dataset.by_class) for episode in episodes]
    support, query = (np.stack(part).reshape(len(images), -1) for part in zip(*images, strict=True))
    row = start.weight.shape[1] * start.weight.itemsize
    step = max(1, SLICE_BYTES // (row * (support.shape[1] + query.shape[1])))
    grams = []
    for low in range(0, len(episodes), step):
        part = slice(low, low + step)
        heads = UntrainedHeads(start.weight[part], start.bias[part])
        seen = gather_features(inputs.features, support[part], start.weight)
        asked = gather_features(inputs.features, query[part], start.weight)
        grams.append((build_gram(seen, seen, heads), build_gram(asked, seen, heads)))
    first, second = (Gram(*map(torch.cat, zip(*g, strict=True))) for g in zip(*grams, strict=True))
    return first, second


def gather_features(
    features: NDArray[np.float32], index: NDArray[np.int64], like: Tensor
) -> Tensor:
    """Features (*index.shape, padded(D)) of the images in `index`, on like's device and dtype."""
    found = torch.from_numpy(features[index]).to(like)
    surplus = padded_dim(found.shape[-1]) - found.shape[-1]
    return pad(found, (0, surplus)) if surplus else found


def padded_dim(dim: int) -> int:
    """The next multiple of ALIGNMENT."""
    return -(-dim // ALIGNMENT) * ALIGNMENT
