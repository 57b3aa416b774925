"""ResNet-50 of the reinitialization study: layer norm in place of batch norm; K = 16 (_layers.py).

He et al. 2016 (https://arxiv.org/abs/1512.03385) with the ImageNet stem and torchvision's names, so
`bn1` is a layer norm here.
"""

from torch import nn

from fsbench.backbones.architectures import Architecture, _layers
from fsbench.backbones.architectures._resnet import Bottleneck, ResNet, roles


def resnet50(num_classes: int, width: int) -> nn.Module:
    """Build the network with layer norms and He-normal weights."""
    model = ResNet(Bottleneck, (3, 4, 6, 3), num_classes, width, "imagenet")
    norms = {n: m for n, m in model.named_modules() if isinstance(m, nn.BatchNorm2d)}
    for name, norm in norms.items():
        model.set_submodule(name, _layers.layer_norm(norm.num_features))
    return _layers.initialize_he(model)


ARCHITECTURE = Architecture(
    name="resnet50",
    factory=resnet50,
    roles=roles,
    default_width=64,
    input_size=_layers.INPUT_SIZE,
    summary="ResNet-50 with the ImageNet stem and layer norm",
)
