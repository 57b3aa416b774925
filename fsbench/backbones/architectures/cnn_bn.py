"""The CNN-BN of the soft-weight-rescaling paper: batch norm after both convolutions."""

from torch import nn

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._layers import chain_roles
from fsbench.backbones.architectures.cnn import small_cnn


def cnn_bn(num_classes: int, width: int, side: int) -> nn.Module:
    """Build the CNN with batch norm."""
    return small_cnn("cnn_bn", num_classes, width, side, norm=True)


ARCHITECTURE = Architecture(
    name="cnn_bn",
    factory=cnn_bn,
    roles=chain_roles,
    default_width=16,
    input_size=32,
    summary="the cnn with batch norm after both convolutions",
    features="last hidden layer",
    fixed_input=True,
)
