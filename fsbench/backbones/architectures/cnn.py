"""The CNN of the soft-weight-rescaling paper, without normalisation (_small_cnn.py)."""

from __future__ import annotations

from torch import nn

from fsbench.backbones.architectures._base import Architecture
from fsbench.backbones.architectures._chain import roles
from fsbench.backbones.architectures._small_cnn import small_cnn


def cnn(num_classes: int, width: int, side: int) -> nn.Module:
    return small_cnn("cnn", num_classes, width, side, norm=False)


ARCHITECTURE = Architecture(
    name="cnn",
    factory=cnn,
    roles=roles,
    default_width=16,
    input_size=32,
    summary="two 5x5 convolutions of 16 channels, 100 hidden units",
    features="last hidden layer",
    fixed_input=True,
)
