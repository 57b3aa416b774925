"""Controls that learn nothing and need no weights: control:pixels and control:colour.

A backbone that recognises what is in an image does better than brightness, framing and colour. Any
size of images is theirs, so an evaluation states it: --input-size.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from fsbench.backbones.preprocessing import Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork
from fsbench.core.errors import UnknownName, UsageError

FORM = "control:NAME"
PREFIX = "control:"
SIDE, BINS = 8, 16


class PixelMeans(nn.Module):
    """Images in [0, 1] (B, 3, H, W) -> means of each channel over a grid of 8 x 8, (B, 192)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("grid", torch.tensor([SIDE, SIDE]))  # tells it from other controls

    def forward(self, images: Tensor) -> Tensor:
        return functional.adaptive_avg_pool2d(images, SIDE).flatten(1)


class ColourStatistics(nn.Module):
    """Images in [0, 1] (B, 3, H, W) -> statistics of each channel, (B, 54).

    The three means, the three standard deviations, and the shares of pixels in 16 equal bins.
    """

    edges: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.linspace(0, 1, BINS + 1)[1:-1])

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.flatten(2).contiguous()
        bins = torch.bucketize(pixels, self.edges, right=True)
        shares = torch.stack([(bins == number).float().mean(2) for number in range(BINS)], 2)
        return torch.cat([pixels.mean(2), pixels.std(2, correction=0), shares.flatten(1)], 1)


CONTROLS = {
    "pixels": (PixelMeans, "means of 8 x 8 parts of each channel"),
    "colour": (ColourStatistics, "mean, deviation and histogram of each channel"),
}
"""Module of each control, and what its features are."""


def check(request: BackboneRequest) -> None:
    """Raise UnknownName, or UsageError for a seed of weights."""
    if request.name not in CONTROLS:
        raise UnknownName("control", request.name, CONTROLS)
    if request.random_init is not None:
        raise UsageError(f"{request.ref} has no weights", fix="leave --random-init out")


def load(request: BackboneRequest) -> LoadedNetwork:
    module, features = CONTROLS[request.name]
    facts = Preprocessing.stated("the control", mean="none", std="none")
    return LoadedNetwork(module(), request.ref, features, facts, test_size=32)
