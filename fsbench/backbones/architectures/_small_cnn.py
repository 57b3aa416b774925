"""Two 5x5 convolutions of 16 channels with max-pooling, 100 hidden units.

"Soft Weight Rescaling", appendix D.1, and official code (methods.md B): padding 1, so 32 px become
16 x 6 x 6 = 576 values. At another width the hidden layer scales along.
"""

from __future__ import annotations

from torch import nn

from fsbench.backbones.architectures._chain import Chain, conv_unit, too_small

LEAST = 10
"""Side (px) that leaves one pixel after both stages."""


def small_cnn(name: str, num_classes: int, width: int, side: int, norm: bool) -> nn.Module:
    """Raises UsageError for images under 10 px."""
    if side < LEAST:
        raise too_small(name, side, LEAST)
    stages: list[nn.Module] = [
        nn.Sequential(*conv_unit(n_in, width, 5, norm), nn.MaxPool2d(2)) for n_in in (3, width)
    ]
    left = ((side - 2) // 2 - 2) // 2
    hidden = max(1, 100 * width // 16)
    return Chain(stages, [("fc1", hidden)], num_classes, side, width * left * left)
