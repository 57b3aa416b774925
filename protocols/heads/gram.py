"""Gram matrices of cached features, initial weights and order of data: all that heads need.

Features are gathered a few episodes at a time, into memory that fits a core's cache; afterwards
nothing depends on the feature dimension. Every draw comes from fsbench.core.seeding under (purpose,
episode, stream), so it depends on no block, shard, order of work, device or dtype.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from fsbench.core.seeding import Name, permutations, uniforms
from fsbench.data.episodes import Episode
from protocols.base import Inputs

ALIGNMENT = 16
"""Features are zero-padded to a multiple of this, so every row starts at an aligned address."""

SLICE_BYTES = 4 * 2**20
"""Bytes of features in memory at once, at least one episode."""


class UntrainedHeads(NamedTuple):
    """Untrained linear heads: weight (E, D, C), class dimension last, and bias (E, C)."""

    weight: Tensor
    bias: Tensor


class Gram(NamedTuple):
    """m images of each of E episodes, as linear heads on n support images need them.

    kernel (E, n, m): inner products with the support, plus 1 for the bias; untrained (E, C, m):
    logits of the heads before training.
    """

    kernel: Tensor
    untrained: Tensor

    def take(self, images: slice) -> "Gram":
        return Gram(self.kernel[:, :, images], self.untrained[:, :, images])


def build_gram(images: Tensor, support: Tensor, start: UntrainedHeads) -> Gram:
    """Return the Gram matrices of images (E, m, D) with support (E, n, D).

    All in one product with the many images last: CPUs are several times slower at a product with
    only a few columns.
    """
    rows = torch.cat([support, start.weight.mT], dim=1)
    offset = torch.cat([torch.ones_like(support[:, :, 0]), start.bias], dim=1)
    products = torch.baddbmm(offset[:, :, None], rows, images.mT)
    return Gram(*products.tensor_split([support.shape[1]], dim=1))


def support_and_query(
    inputs: Inputs, episodes: Sequence[Episode], start: UntrainedHeads
) -> tuple[Gram, Gram]:
    """Return Gram matrices of the support (m = n) and of the queries, class by class.

    start: the untrained heads, which set device and dtype; their D is padded_dim(D).
    """
    n = episodes[0].support.size
    images = stack_images(inputs.dataset.by_class, episodes)
    step = max(1, SLICE_BYTES // (start.weight[0, :, 0].nbytes * images.shape[1]))
    grams = []
    for low in range(0, len(episodes), step):
        part = slice(low, low + step)
        rows = gather_features(inputs.features, images[part], start.weight)
        heads = UntrainedHeads(start.weight[part], start.bias[part])
        grams.append(build_gram(rows, rows[:, :n], heads))
    gram = Gram(*map(torch.cat, zip(*grams, strict=True)))
    return gram.take(slice(n)), gram.take(slice(n, None))


def stack_images(
    by_class: Mapping[int, NDArray[np.int64]], episodes: Sequence[Episode]
) -> NDArray[np.int64]:
    """Return `Episode.images` of all episodes, (E, n + q): those of the support come first."""
    first = dict(zip(by_class, accumulate(map(len, by_class.values()), initial=0), strict=False))
    starts = np.array([[first[c] for c in episode.class_ids.tolist()] for episode in episodes])
    sides = ([episode.support for episode in episodes], [episode.query for episode in episodes])
    rows = [(np.stack(side) + starts[:, :, None]).reshape(len(starts), -1) for side in sides]
    return np.take(np.concatenate(list(by_class.values())), np.concatenate(rows, axis=1))


def gather_features(
    features: NDArray[np.float32], index: NDArray[np.int64], reference: Tensor
) -> Tensor:
    """Return features (*index.shape, padded D) of the images in `index`, as `reference` is
    stored."""
    rows = torch.from_numpy(np.take(features, index, axis=0)).to(reference)
    surplus = padded_dim(rows.shape[-1]) - rows.shape[-1]
    return pad(rows, (0, surplus)) if surplus else rows


def padded_dim(dim: int) -> int:
    """Return the next multiple of ALIGNMENT."""
    return -(-dim // ALIGNMENT) * ALIGNMENT


Names = tuple[Name, ...]


def draw_linear_init(dim: int, n_classes: int, *names: Name) -> NDArray[np.float64]:
    """Draw PyTorch's default init of nn.Linear(dim, n_classes): U(-1/sqrt(dim), 1/sqrt(dim)).

    Shape (dim + 1, n_classes): the weight, class dimension last, and the bias as last row.
    """
    drawn = uniforms((dim + 1, n_classes), *names, below=2 / np.sqrt(dim))
    drawn -= 1 / np.sqrt(dim)
    return drawn


def draw_untrained_heads(
    names: Names, indices: Sequence[int], dim: int, n_way: int, reference: Tensor
) -> UntrainedHeads:
    """Draw the untrained heads of these episodes for features of dimension `dim`.

    The weight is (E, padded_dim(dim), n_way), with zero rows as padding, and lies in memory class
    by class, as build_gram reads it; reference: sets device and dtype.
    """
    weight = reference.new_zeros(len(indices), n_way, padded_dim(dim), device="cpu").mT
    bias = reference.new_zeros(len(indices), n_way, device="cpu")
    weights, biases = weight.numpy(), bias.numpy()  # NumPy needs half of torch's time here
    for row, i in enumerate(indices):
        drawn = draw_linear_init(dim, n_way, *names, i, "head-init")
        weights[row, :dim], biases[row] = drawn[:-1], drawn[-1]
    return UntrainedHeads(weight.to(reference.device), bias.to(reference.device))


def draw_orders(names: Names, indices: Sequence[int], epochs: int, n: int, device: str) -> Tensor:
    """Draw the order of the n support images in each epoch, (E, epochs, n)."""
    drawn = [permutations(epochs, n, *names, i, "head-order") for i in indices]
    return torch.from_numpy(np.stack(drawn)).to(device)
