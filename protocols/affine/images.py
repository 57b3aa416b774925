"""The images of some episodes, decoded once and kept as bytes for all their training steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.specs import ImageSpec
from fsbench.data.episodes import Episode
from fsbench.data.images import to_array
from protocols.base import Inputs


class EpisodeImages(NamedTuple):
    """support (E * n, 3, s, s) and query (E * q, 3, s, s) uint8, episode by episode, then class by
    class, channels last in memory; rows of features (., D) float32 without a backbone."""

    support: Tensor
    query: Tensor


def read(inputs: Inputs, image: ImageSpec, episodes: Sequence[Episode]) -> EpisodeImages:
    """On the inputs' device. Raises DataError naming a corrupt image."""
    found = [episode.images(inputs.dataset.by_class) for episode in episodes]
    sides = (np.concatenate([side.ravel() for side in sides]) for sides in zip(*found, strict=True))
    return EpisodeImages(*(pixels(inputs, image, side) for side in sides))


def pixels(inputs: Inputs, image: ImageSpec, indices: NDArray[np.int64]) -> Tensor:
    if inputs.backbone is None:
        return torch.from_numpy(inputs.features[indices]).to(inputs.device)
    decoded = np.stack([to_array(inputs.dataset.image(int(i)), image) for i in indices])
    whole = torch.from_numpy(decoded).to(inputs.device)
    return whole.contiguous(memory_format=torch.channels_last)
