"""The CNN of the soft-weight-rescaling paper, without normalisation.

"Soft Weight Rescaling", appendix D.1, and its official code: two 5x5 convolutions of 16 channels
with max pooling and padding 1, so 32 px become 16 x 6 x 6 = 576 values, and 100 hidden units.
At another width the hidden layer scales along.
"""

from torch import nn

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._layers import Chain, chain_roles, conv_unit, small_image_error

LEAST = 10
"""Side (px) that leaves one pixel after both stages."""


def small_cnn(name: str, num_classes: int, width: int, side: int, norm: bool) -> nn.Module:
    """Build the CNN, with batch norm if `norm`. Raise UsageError for images under 10 px."""
    if side < LEAST:
        raise small_image_error(name, side, LEAST)
    stages: list[nn.Module] = [
        nn.Sequential(*conv_unit(n_in, width, 5, norm), nn.MaxPool2d(2)) for n_in in (3, width)
    ]
    left = ((side - 2) // 2 - 2) // 2
    hidden = max(1, 100 * width // 16)
    return Chain(stages, [("fc1", hidden)], num_classes, side, width * left * left)


def cnn(num_classes: int, width: int, side: int) -> nn.Module:
    """Build the CNN without normalisation."""
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
