"""The shallow MobileNet of the reinitialization study: 8 separable units, layer norm (_chains.py).

Howard et al. 2017, "MobileNets", https://arxiv.org/abs/1704.04861: Table 1 without its five units
of 14 x 14 x 512, the shallow network of section 4, with a stem and 8 separable units. The
study counts K = 7 without saying how. Our reading: the stem belongs to the first block, as in its
ResNet-50, and the last two units, of equal size, are one block.
"""

from torch import nn

from fsbench.backbones.architectures import RoleMap, _chains

STAGES = ((2, 1, 1), (4, 2, 2), (8, 2, 2), (16, 2, 1), (32, 2, 2))
"""Channels as a multiple of the width, stride of the first unit, units."""


def normed(n_in: int, n_out: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    padding = kernel // 2
    conv = nn.Conv2d(n_in, n_out, kernel, stride, padding, groups=groups, bias=False)
    return nn.Sequential(conv, _chains.layer_norm(n_out), nn.ReLU(inplace=True))


def separable(n_in: int, n_out: int, stride: int) -> nn.Sequential:
    """Return a depthwise 3x3 convolution followed by a 1x1 convolution."""
    return nn.Sequential(normed(n_in, n_in, 3, stride, groups=n_in), normed(n_in, n_out, 1))


class MobileNet(nn.Sequential):
    """Images (B, 3, H, W) -> logits (B, num_classes), or features (B, 32 width)."""

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        self.stem = normed(3, width, 3, stride=2)
        n_in = width
        for i, (multiple, stride, depth) in enumerate(STAGES):
            n_out = multiple * width
            rest = [separable(n_out, n_out, 1) for _ in range(depth - 1)]
            self.add_module(f"layer{i + 1}", nn.Sequential(separable(n_in, n_out, stride), *rest))
            n_in = n_out
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(n_in, num_classes) if num_classes else nn.Identity()


def mobilenet(num_classes: int, width: int) -> nn.Module:
    """Build the network with He-normal weights."""
    return _chains.initialize(MobileNet(num_classes, width))


def mobilenet_roles(model: nn.Module) -> RoleMap:
    """Return the roles with K = 7 blocks, see the module docstring."""
    units = [f"layer{i + 1}.{j}" for i, (_, _, depth) in enumerate(STAGES) for j in range(depth)]
    blocks = (("stem", units[0]), *((unit,) for unit in units[1:-2]), tuple(units[-2:]))
    return RoleMap.of(model, blocks, tuple(f"layer{i + 1}" for i in range(len(STAGES))))
