"""The one thing that pretraining and protocols share: a frozen, head-free backbone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fsbench.schema import BackboneFacts


@dataclass(frozen=True, eq=False)
class Backbone:
    """A head-free network in eval mode with what is known of it.

    module: normalised images (B, 3, H, W) -> features (B, D).
    """

    facts: BackboneFacts
    module: nn.Module

    def normalised(self, images: Tensor) -> Tensor:
        """What the module takes for images (B, 3, H, W), uint8 or float in [0, 1].

        Mean and std are the backbone's own.
        """
        x = images.float() / 255 if images.dtype == torch.uint8 else images
        mean, std = (x.new_tensor(v).view(1, 3, 1, 1) for v in (self.facts.mean, self.facts.std))
        return (x - mean) / std

    def features(self, images: Tensor) -> Tensor:
        """Features (B, D) float32 of images (B, 3, H, W), uint8 or float in [0, 1].

        Gradients flow where the caller enables them.
        """
        out: Tensor = self.module(self.normalised(images))
        return out.float()
