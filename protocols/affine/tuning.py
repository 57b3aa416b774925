"""Affine tuning of E episodes at once: images, networks, heads, one optimizer and step for all.

SGD is elementwise and the loss is a sum over episodes, so no episode affects another.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fsbench.backbones.base import Backbone
from fsbench.backbones.kernels import memory_layout
from fsbench.core import process
from fsbench.core.specs import AffineSpec, EpisodicSpec, HeadSpec, ImageSpec
from fsbench.data.episodes import Episode
from fsbench.data.images import crop_centres
from protocols.affine.network import EpisodeNetwork
from protocols.base import Inputs
from protocols.heads.gram import UntrainedHeads

DTYPES = {"float32": torch.float32, "float64": torch.float64}

QUERIES = 15
"""Queries of each episode per forward pass without gradients."""


class AffineTuning:
    """E networks and heads; start: untrained heads (E, D, n_way), not padded.

    Without a backbone, images are rows of features and nothing but the heads is trained.
    """

    def __init__(
        self, backbone: Backbone | None, spec: EpisodicSpec, start: UntrainedHeads
    ) -> None:
        self.backbone, self.dtype = backbone, start.weight.dtype
        module = nn.Identity() if backbone is None else backbone.module
        self.episodes = len(start.weight)
        affine = spec.affine or AffineSpec()
        self.network = EpisodeNetwork(
            module,
            self.episodes,
            spec.bn_mode,
            start.weight,
            self.episodes * spec.episode.n_way * spec.episode.k_shot,
            torch.bfloat16 if affine.dtype else None,
        )
        self.weight = start.weight.clone().requires_grad_()
        self.bias = start.bias.clone().requires_grad_()
        self.optimizer = make_optimizer(
            ([self.weight, self.bias], spec.head),
            ([self.network.weight, self.network.bias], affine),
        )

    def step(self, images: Tensor, labels: Tensor, rows: Tensor | None = None) -> None:
        """One mini-batch of each episode: images (E * b, ...) and labels (E * b,) in 0..n_way-1.

        rows (E * b,): the places of the images in the stacked support, so that what no step changes
        is computed once; None computes all.
        """
        logits = self.forward(images, rows).flatten(0, 1)
        loss = cross_entropy(logits, labels, reduction="sum") * (self.episodes / len(labels))
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def forward(self, images: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits (E, b, n_way) of images (E * b, ...)."""
        inputs = images if self.backbone is None else self.backbone.normalised(images)
        features = self.network(inputs.to(self.dtype), rows)
        return torch.baddbmm(self.bias[:, None], features, self.weight)

    def logits(self, images: Tensor) -> Tensor:
        """Logits (E, q, n_way) of queries (E * q, ...), after the last step."""
        self.network.finish()
        with torch.no_grad():
            rows = torch.arange(len(images), device=images.device).view(self.episodes, -1)
            parts = [rows[:, low : low + QUERIES] for low in range(0, rows.shape[1], QUERIES)]
            return torch.cat([self.forward(images[part.flatten()]) for part in parts], dim=1)


def make_optimizer(*groups: tuple[list[Tensor], HeadSpec | AffineSpec]) -> torch.optim.SGD:
    """Return PyTorch's SGD, which copies the first gradient into the momentum buffer undamped.

    groups: parameters and the settings that they are trained with.
    """
    names = {"lr", "momentum", "dampening", "weight_decay"}
    options = [{"params": tensors, **spec.model_dump(include=names)} for tensors, spec in groups]
    return torch.optim.SGD(options)


class TuningImages(NamedTuple):
    """support (E * n, 3, s, s) and query (E * q, 3, s, s) uint8, episode by episode, then class by
    class, channels last in memory; rows of features (., D) float32 without a backbone."""

    support: Tensor
    query: Tensor


def read_episode_images(
    inputs: Inputs, image: ImageSpec, episodes: Sequence[Episode]
) -> TuningImages:
    """Decode the images onto the inputs' device. Raise DataError naming a corrupt image."""
    images = [episode.images(inputs.dataset.by_class) for episode in episodes]
    sides = (np.stack(side).ravel() for side in zip(*images, strict=True))
    return TuningImages(*(read_pixels(inputs, image, side) for side in sides))


def read_pixels(inputs: Inputs, image: ImageSpec, indices: NDArray[np.int64]) -> Tensor:
    if inputs.backbone is None:
        return torch.from_numpy(inputs.features[indices]).to(inputs.device)
    with ThreadPoolExecutor(process.count_cores()) as threads:
        images = threads.map(lambda i: crop_centres([inputs.dataset.image(i)], image, 1), indices)
        whole = torch.from_numpy(np.concatenate([*images])).to(inputs.device)
    return whole.contiguous(memory_format=memory_layout(inputs.backbone.module))
