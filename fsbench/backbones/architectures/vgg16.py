"""VGG-16 of the reinitialization study: layer norm after every layer but the head (_layers.py).

Simonyan & Zisserman 2014, configuration D, 4096-4096 classifier; K = 13. At another width the
classifier scales along.
"""

from itertools import pairwise

from torch import nn

from fsbench.backbones.architectures import Architecture, _layers
from fsbench.backbones.architectures.swr_vgg16 import LEAST, STAGES


def vgg16(num_classes: int, width: int, side: int) -> nn.Module:
    """Build the network. Raise UsageError for images under 32 px."""
    if side < LEAST:
        raise _layers.small_image_error("vgg16", side, LEAST)
    stages: list[nn.Module] = []
    n_in = 3
    for multiple, depth in STAGES:
        channels = (n_in, *[multiple * width] * depth)
        units = [module for pair in pairwise(channels) for module in _layers.normed_conv(*pair)]
        stages.append(nn.Sequential(*units, nn.MaxPool2d(2)))
        n_in = channels[-1]
    hidden = [("fc6", 64 * width), ("fc7", 64 * width)]
    values = n_in * (side // 32) ** 2
    return _layers.initialize_he(
        _layers.Chain(stages, hidden, num_classes, side, values, layer_norm=True)
    )


ARCHITECTURE = Architecture(
    name="vgg16",
    factory=vgg16,
    roles=_layers.chain_unit_roles,
    default_width=64,
    input_size=_layers.INPUT_SIZE,
    summary="VGG-16 with layer norm and a 4096-4096 classifier",
    features="last hidden layer",
    fixed_input=True,
)
