"""DenseNet for images of 32 px, of torchvision's dense blocks and with its names.

Huang et al. 2017, "Densely Connected Convolutional Networks", https://arxiv.org/abs/1608.06993:
bottlenecks and a compression of one half (BC), a 3x3 stem of 2 k channels. Initial weights are
kaiming-normal with fan-in.
"""

from collections.abc import Sequence

from torch import nn

from fsbench.backbones.architectures import RoleMap, _chains
from fsbench.backbones.architectures._chains import Norm


def densenet(
    num_classes: int, width: int, depths: Sequence[int], norm: Norm = nn.BatchNorm2d
) -> nn.Module:
    """Build a DenseNet; width: its growth rate k; depths: dense layers of each block."""
    from torchvision.models import DenseNet

    model: nn.Module = DenseNet(width, depths, 2 * width, num_classes=max(1, num_classes))
    features = model.get_submodule("features")
    features.conv0 = nn.Conv2d(3, 2 * width, 3, padding=1, bias=False)
    for name in ("norm0", "relu0", "pool0"):
        delattr(features, name)
    for name, module in [*model.named_modules()]:
        if isinstance(module, nn.BatchNorm2d):
            model.set_submodule(name, norm(module.num_features))
    if not num_classes:
        model.classifier = nn.Identity()
    return _chains.initialize(model)


def densenet_roles(model: nn.Module) -> RoleMap:
    """Return the roles: a block is a dense block behind the stem or a transition."""
    names = [f"features.{name}" for name, _ in model.get_submodule("features").named_children()]
    stages = tuple(names[1::2])
    blocks: list[tuple[str, ...]] = [*zip(names[::2], stages, strict=False)]
    blocks[-1] += (names[-1],)
    return RoleMap.of(model, blocks, stages, ("classifier",), head="classifier")
