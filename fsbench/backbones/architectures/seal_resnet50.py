"""ResNet-50 as SEAL pretrains it: unmodified ImageNet stem at 64 px, fan-in initialisation.

Source: models/resnet.py of SEAL's official code. The paper's L = 23 is the 23rd convolution without
downsample convolutions, which is the first of `layer3`.
"""

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._resnet import Bottleneck, resnet, roles

ARCHITECTURE = Architecture(
    name="seal_resnet50",
    factory=resnet(Bottleneck, (3, 4, 6, 3), "imagenet"),
    roles=roles,
    default_width=64,
    input_size=64,
    summary="ResNet-50 with the ImageNet stem and SEAL's initialisation",
)
