"""One network for many episodes: frozen kernels are shared, affine parameters are not.

A forward pass takes the images of all episodes at once, so that a kernel is read once for all of
them; no gradient of a kernel is ever computed.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from fsbench.backbones.norms import affine_layers
from fsbench.core.specs import BnMode
from protocols.affine.norms import BatchStatistics, EpisodeNorm


class EpisodeNetwork:
    """A copy of a backbone's module for E episodes.

    weight, bias (E, P): scales and shifts of all layers, one after the other, as they are trained;
    both start at the source's. A layer without shift keeps 0 there. bn_mode: whether BatchNorm
    keeps the source's statistics (eval) or goes by each episode's batches while it trains (train).
    like: gives dtype and device.
    """

    def __init__(self, module: nn.Module, episodes: int, bn_mode: BnMode, like: Tensor) -> None:
        self.episodes = episodes
        self.module = deepcopy(module).to(like.dtype)
        layers = affine_layers(self.module).values()
        self.norms = [EpisodeNorm(layer, episodes, bn_mode == "train") for layer in layers]
        for layer, norm in zip(layers, self.norms, strict=True):
            layer.forward = norm
        self.sizes = [norm.weight.numel() for norm in self.norms]
        self.weight = self.tuned(_flat([norm.weight for norm in self.norms], like))
        self.bias = self.tuned(_flat([norm.bias for norm in self.norms], like))
        self.mean = _flat([norm.mean for norm in self.norms], like)
        self.inverse = _flat([norm.inverse for norm in self.norms], like)
        self.shifted = _flat([norm.shifted for norm in self.norms], like)

    def tuned(self, start: Tensor) -> Tensor:
        return start.repeat(self.episodes, 1).requires_grad_()

    def __call__(self, images: Tensor) -> Tensor:
        """Features (E, b, D) of images (E * b, ...), episode by episode."""
        scale = self.weight * self.inverse
        shift = torch.addcmul(self.bias * self.shifted, self.mean, scale, value=-1)
        parts = (torch.split_with_sizes(p, self.sizes, 1) for p in (scale, shift))
        for norm, of_scale, of_shift in zip(self.norms, *parts, strict=True):
            norm.scale, norm.shift = of_scale, of_shift
        features: Tensor = self.module(images)
        return features.view(self.episodes, -1, features.shape[1])

    def finish(self) -> None:
        """Training is over: queries meet fixed statistics in both modes."""
        for norm in self.norms:
            if isinstance(norm.standardize, BatchStatistics):
                norm.standardize.training = False


def _flat(parts: list[Tensor], like: Tensor) -> Tensor:
    """All numbers of the parts, (P,)."""
    return torch.cat([like.new_empty(0), *(part.detach().to(like).flatten() for part in parts)])
