"""VGG-16 of the soft-weight-rescaling paper: batch norm, 4096-4096 classifier, no dropout.

"Soft Weight Rescaling", appendix D.1; Simonyan & Zisserman 2014, configuration D. The released code
has only a stub. Our reading: batch norm because the paper's two lambdas are for networks with it,
convolutions without bias as in its CNN-BN, PyTorch's initial weights. At 64 px the classifier
receives 512 x 2 x 2 values; at another width it scales along.
"""

from torch import nn

from fsbench.backbones.architectures import Architecture, _layers

STAGES = ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))
"""Channels as a multiple of the width, and number of convolutions, per stage."""
LEAST = 32
"""Smallest side (px), with one pixel after five poolings."""


def build_swr_vgg16(num_classes: int, width: int, side: int) -> nn.Module:
    """Build the network. Raise UsageError for images under 32 px."""
    if side < LEAST:
        raise _layers.small_image_error("swr_vgg16", side, LEAST)
    stages: list[nn.Module] = []
    n_in = 3
    for multiple, depth in STAGES:
        units: list[nn.Module] = []
        for _ in range(depth):
            units += _layers.conv_unit(n_in, multiple * width, 3, norm=True)
            n_in = multiple * width
        stages.append(nn.Sequential(*units, nn.MaxPool2d(2)))
    hidden = [("fc6", 64 * width), ("fc7", 64 * width)]
    return _layers.Chain(stages, hidden, num_classes, side, n_in * (side // 32) ** 2)


ARCHITECTURE = Architecture(
    name="swr_vgg16",
    factory=build_swr_vgg16,
    roles=_layers.chain_unit_roles,
    default_width=64,
    input_size=64,
    summary="VGG-16 with batch norm and a 4096-4096 classifier without dropout",
    features="last hidden layer",
    fixed_input=True,
)
