"""ResNet-50 of the weight compander experiments: ImageNet stem, kaiming-uniform weights.

Weight Compander (https://arxiv.org/abs/2306.16993), sections IV-A and IV-B: "ResNet networks are
initialized Kaiming-uniform", after He et al. 2015, so with the gain sqrt 2 of ReLU. Everything else
is as in fsbench/seal_resnet50.
"""

from __future__ import annotations

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._resnet import Bottleneck, resnet, roles

ARCHITECTURE = Architecture(
    name="wc_resnet50",
    factory=resnet(Bottleneck, (3, 4, 6, 3), "imagenet", "uniform"),
    roles=roles,
    default_width=64,
    input_size=224,
    summary="ResNet-50 with the ImageNet stem and kaiming-uniform weights",
)
