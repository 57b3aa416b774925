"""The one thing that pretraining and protocols share: a frozen, head-free backbone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fsbench.core.schema import BackboneFacts


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
        if images.dtype == torch.uint8:
            fresh = images.float().div_(255)
            return fresh.sub_(spread(self.facts.mean, fresh)).div_(spread(self.facts.std, fresh))
        return (images - spread(self.facts.mean, images)) / spread(self.facts.std, images)

    def features(self, images: Tensor) -> Tensor:
        """Features (B, D) float32 of images (B, 3, H, W), uint8 or float in [0, 1].

        Gradients flow where the caller enables them.
        """
        out: Tensor = self.module(self.normalised(images))
        return out.float()


def spread(values: tuple[float, ...], like: Tensor) -> Tensor:
    """A value a channel as an image (1, 3, H, W), laid out like the images (B, 3, H, W).

    Elementwise work then runs along the memory, not over three channels at a time.
    """
    return torch.empty_like(like[:1]).copy_(like.new_tensor(values).view(1, 3, 1, 1))
