"""Residual networks of any width, with torchvision's module and state-dict names.

He et al. 2016, "Deep Residual Learning for Image Recognition", https://arxiv.org/abs/1512.03385,
with the stride on the 3x3 convolution of a bottleneck. Initial weights as in the official code of
SEAL (models/resnet.py): convolutions and head kaiming-normal with fan-in, norm scales 1, no
zero-init of the last norm. torchvision's class has a fixed stem width and fan-out initialisation.
"""

from collections.abc import Callable
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap, _chains, layer_names, weighted_names

Stem = Literal["imagenet", "strided", "small"]
"""imagenet: 7x7, stride 2, and 3x3 max pooling, stride 2; strided: 3x3, stride 2; small: 3x3."""
Kernels = Literal["normal", "uniform"]
"""Initial law of convolutions and head: kaiming-normal or kaiming-uniform, both with fan-in."""


def conv(n_in: int, n_out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Return a convolution without bias that keeps the size up to its stride."""
    return nn.Conv2d(n_in, n_out, kernel, stride, padding=kernel // 2, bias=False)


class Residual(nn.Module):
    """A residual unit: relu(branch(x) + shortcut(x)); a subclass registers and runs the branch."""

    expansion: ClassVar[int]

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = width * self.expansion
        self.branch_layers(n_in, width, stride)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = (
            nn.Sequential(conv(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))
            if stride != 1 or n_in != n_out
            else None
        )

    def branch_layers(self, n_in: int, width: int, stride: int) -> None:
        """Register the layers of the branch."""
        raise NotImplementedError

    def branch(self, x: Tensor) -> Tensor:
        """Run the branch."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.branch(x)
        out += shortcut
        return cast("Tensor", self.relu(out))


class BasicBlock(Residual):
    """Two 3x3 convolutions."""

    expansion = 1

    def branch_layers(self, n_in: int, width: int, stride: int) -> None:
        self.conv1, self.bn1 = conv(n_in, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3), nn.BatchNorm2d(width)

    def branch(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        out: Tensor = self.bn2(self.conv2(x))
        return out


class Bottleneck(Residual):
    """1x1, 3x3 (with the stride) and 1x1 convolution to four times the width."""

    expansion = 4

    def branch_layers(self, n_in: int, width: int, stride: int) -> None:
        self.conv1, self.bn1 = conv(n_in, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)

    def branch(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        out: Tensor = self.bn3(self.conv3(x))
        return out


def stage(block: type[Residual], n_in: int, width: int, depth: int, stride: int) -> nn.Sequential:
    """Return a stage of `depth` units, the first one with the stride."""
    rest = [block(width * block.expansion, width, 1) for _ in range(depth - 1)]
    return nn.Sequential(block(n_in, width, stride), *rest)


class ResNet(nn.Module):
    """Images (B, 3, H, W) -> logits (B, num_classes), or features (B, 8 width expansion)."""

    def __init__(
        self,
        block: type[Residual],
        depths: tuple[int, ...],
        num_classes: int,
        width: int,
        stem: Stem,
        kernels: Kernels = "normal",
    ) -> None:
        super().__init__()
        imagenet = stem == "imagenet"
        self.conv1 = conv(3, width, 7 if imagenet else 3, 1 if stem == "small" else 2)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if imagenet else nn.Identity()
        n_in = width
        for i, depth in enumerate(depths):
            units = stage(block, n_in, width << i, depth, 1 if i == 0 else 2)
            self.add_module(f"layer{i + 1}", units)
            n_in = (width << i) * block.expansion
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(n_in, num_classes) if num_classes else nn.Identity()
        draw = nn.init.kaiming_normal_ if kernels == "normal" else nn.init.kaiming_uniform_
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                draw(module.weight, mode="fan_in", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for name in stages(self):
            x = getattr(self, name)(x)
        out: Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return out


def stages(model: nn.Module) -> tuple[str, ...]:
    """Return the names layer1, layer2, ... of the model."""
    return tuple(name for name, _ in model.named_children() if name.startswith("layer"))


def resnet_roles(model: nn.Module) -> RoleMap:
    """Return the roles: residual units are blocks, the first one with the stem.

    This gives K = 16 for ResNet-50, as in the reinitialization study, appendix C.
    """
    units = [
        f"{s}.{unit}" for s in stages(model) for unit, _ in model.get_submodule(s).named_children()
    ]
    blocks = (("conv1", "bn1", units[0]), *((unit,) for unit in units[1:]))
    return RoleMap(
        layers=layer_names(model),
        blocks=blocks,
        head="fc",
        fully_connected=("fc",),
        stages=stages(model),
        weighted=weighted_names(model),
    )


def resnet(
    block: type[Residual], depths: tuple[int, ...], stem: Stem, kernels: Kernels = "normal"
) -> Callable[[int, int], nn.Module]:
    """Return the factory of an Architecture."""

    def factory(num_classes: int, width: int) -> nn.Module:
        return ResNet(block, depths, num_classes, width, stem, kernels)

    return factory


def layer_norm_resnet50(num_classes: int, width: int) -> nn.Module:
    """Build the ResNet-50 of the reinitialization study: layer norms and He-normal weights.

    It has the ImageNet stem and torchvision's names, so `bn1` is a layer norm here.
    """
    model = ResNet(Bottleneck, (3, 4, 6, 3), num_classes, width, "imagenet")
    norms = {n: m for n, m in model.named_modules() if isinstance(m, nn.BatchNorm2d)}
    for name, norm in norms.items():
        model.set_submodule(name, _chains.layer_norm(norm.num_features))
    return _chains.initialize(model)
