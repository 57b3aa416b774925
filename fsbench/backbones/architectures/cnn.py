"""The CNN of the soft-weight-rescaling paper, without normalisation (_small_cnn.py)."""

from __future__ import annotations

from torch import nn

from fsbench.backbones.architectures._layers import Chain, chain_roles, conv_unit, small_image_error
from fsbench.backbones.roles import Architecture

LEAST = 10
"""Side (px) that leaves one pixel after both stages."""


def small_cnn(name: str, num_classes: int, width: int, side: int, norm: bool) -> nn.Module:
    """Raises UsageError for images under 10 px."""
    if side < LEAST:
        raise small_image_error(name, side, LEAST)
    stages: list[nn.Module] = [
        nn.Sequential(*conv_unit(n_in, width, 5, norm), nn.MaxPool2d(2)) for n_in in (3, width)
    ]
    left = ((side - 2) // 2 - 2) // 2
    hidden = max(1, 100 * width // 16)
    return Chain(stages, [("fc1", hidden)], num_classes, side, width * left * left)


def cnn(num_classes: int, width: int, side: int) -> nn.Module:
    return small_cnn("cnn", num_classes, width, side, norm=False)


ARCHITECTURE = Architecture(
    name="cnn",
    factory=cnn,
    roles=chain_roles,
    default_width=16,
    input_size=32,
    summary="two 5x5 convolutions of 16 channels, 100 hidden units",
    features="last hidden layer",
    fixed_input=True,
)
