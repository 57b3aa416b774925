"""Affine tuning of E episodes at once: networks, heads, their optimizers, one step for all.

SGD is elementwise and the loss a sum over episodes, so no episode feels another one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fsbench.backbones.base import Backbone
from fsbench.core.specs import AffineSpec, EpisodicSpec, HeadSpec
from protocols.affine.network import EpisodeNetwork
from protocols.heads.gram import Start

DTYPES = {"float32": torch.float32, "float64": torch.float64}

QUERIES = 15
"""Images of each episode in one forward pass without gradients."""


class Tuning:
    """E networks and heads; start: untrained heads (E, D, n_way), not padded.

    Without a backbone, images are rows of features and nothing but the heads is trained.
    """

    def __init__(self, backbone: Backbone | None, spec: EpisodicSpec, start: Start) -> None:
        self.backbone, self.dtype = backbone, start.weight.dtype
        module = nn.Identity() if backbone is None else backbone.module
        self.episodes = len(start.weight)
        self.network = EpisodeNetwork(module, self.episodes, spec.bn_mode, start.weight)
        self.weight = start.weight.clone().requires_grad_()
        self.bias = start.bias.clone().requires_grad_()
        affine = spec.affine or AffineSpec()
        self.optimizers = [
            sgd([self.weight, self.bias], spec.head),
            sgd([self.network.weight, self.network.bias], affine),
        ]

    def step(self, images: Tensor, labels: Tensor) -> None:
        """One mini-batch of each episode: images (E * b, ...) and labels (E * b,) in 0..n_way-1."""
        logits = self.forward(images).flatten(0, 1)
        loss = cross_entropy(logits, labels, reduction="sum") * (self.episodes / len(labels))
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in self.optimizers:
            optimizer.step()

    def forward(self, images: Tensor) -> Tensor:
        """Logits (E, b, n_way) of images (E * b, ...)."""
        given = images if self.backbone is None else self.backbone.normalised(images)
        return torch.baddbmm(self.bias[:, None], self.network(given.to(self.dtype)), self.weight)

    def logits(self, images: Tensor) -> Tensor:
        """Logits (E, q, n_way) of queries (E * q, ...), after the last step."""
        self.network.finish()
        with torch.no_grad():
            rows = torch.arange(len(images), device=images.device).view(self.episodes, -1)
            parts = [rows[:, low : low + QUERIES] for low in range(0, rows.shape[1], QUERIES)]
            return torch.cat([self.forward(images[part.flatten()]) for part in parts], dim=1)


def sgd(parameters: list[Tensor], spec: HeadSpec | AffineSpec) -> torch.optim.SGD:
    """PyTorch's own, which copies the first gradient into the momentum buffer undamped."""
    return torch.optim.SGD(
        parameters,
        lr=spec.lr,
        momentum=spec.momentum,
        dampening=spec.dampening,
        weight_decay=spec.weight_decay,
    )
