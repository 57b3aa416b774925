"""Residual networks of any width, with torchvision's module and state-dict names.

He et al. 2016, "Deep Residual Learning for Image Recognition", https://arxiv.org/abs/1512.03385,
with the stride on the 3x3 convolution of a bottleneck. Initial weights as in the official code of
SEAL (models/resnet.py): convolutions and head kaiming-normal with fan-in, norm scales 1, no
zero-init of the last norm. torchvision's class has a fixed stem width and fan-out initialisation.
Preactivated units are those of Zagoruyko and Komodakis 2016, "Wide Residual Networks",
https://arxiv.org/abs/1605.07146, with a stem of a tenth of the width.
"""

from typing import Literal, cast

from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap, _chains
from fsbench.backbones.architectures._chains import Norm

Stem = Literal["imagenet", "strided", "small"]
"""imagenet: 7x7, stride 2, and 3x3 max pooling, stride 2; strided: 3x3, stride 2; small: 3x3."""


def conv(n_in: int, n_out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Return a convolution without bias that keeps the size up to its stride."""
    return nn.Conv2d(n_in, n_out, kernel, stride, padding=kernel // 2, bias=False)


def pad_shortcut(n_in: int, n_out: int, stride: int) -> nn.Module:
    """Return every stride-th position, between channels of zeros: option A of He et al., 3.3."""
    before = (n_out - n_in) // 2
    channels = nn.ConstantPad3d((0, 0, 0, 0, before, n_out - n_in - before), 0.0)
    return nn.Sequential(nn.AvgPool2d(1, stride), channels)


class Residual(nn.Module):
    """A residual unit: relu(branch(x) + shortcut(x)).

    The branch has two 3x3 convolutions, or those of a bottleneck: 1x1, 3x3 with the stride, and 1x1
    to four times the width. padded: a shortcut to another shape has no weights.
    """

    def __init__(
        self, n_in: int, width: int, stride: int, bottleneck: bool, norm: Norm, padded: bool = False
    ) -> None:
        super().__init__()
        shapes = [(width, 3, stride), (width, 3, 1)]
        if bottleneck:
            shapes = [(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)]
        self.depth, channels = len(shapes), n_in
        for i, (n_out, kernel, step) in enumerate(shapes, 1):
            self.add_module(f"conv{i}", conv(channels, n_out, kernel, step))
            self.add_module(f"bn{i}", norm(n_out))
            channels = n_out
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or n_in != channels:
            self.downsample = (
                pad_shortcut(n_in, channels, stride)
                if padded
                else nn.Sequential(conv(n_in, channels, 1, stride), norm(channels))
            )

    def forward(self, x: Tensor) -> Tensor:
        out = x
        for i in range(1, self.depth + 1):
            out = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(out))
            out = self.relu(out) if i < self.depth else out
        out += x if self.downsample is None else self.downsample(x)
        return cast("Tensor", self.relu(out))


class Preactivated(nn.Module):
    """A unit of two 3x3 convolutions behind norm and ReLU; dropout: rate between them.

    The shortcut to another shape is a 1x1 convolution of relu(bn1(x)).
    """

    def __init__(self, n_in: int, width: int, stride: int, norm: Norm, dropout: float) -> None:
        super().__init__()
        self.bn1, self.conv1 = norm(n_in), conv(n_in, width, 3, stride)
        self.bn2, self.conv2 = norm(width), conv(width, width, 3)
        self.relu, self.dropout = nn.ReLU(inplace=True), nn.Dropout(dropout)
        changes = stride != 1 or n_in != width
        self.downsample = conv(n_in, width, 1, stride) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        active = self.relu(self.bn1(x))
        out = self.dropout(self.relu(self.bn2(self.conv1(active))))
        shortcut = x if self.downsample is None else self.downsample(active)
        return cast("Tensor", self.conv2(out) + shortcut)


class ResNet(nn.Sequential):
    """Images (B, 3, H, W) -> logits (B, num_classes), or features (B, 8 or 32 width)."""

    def __init__(
        self,
        num_classes: int,
        width: int,
        depths: tuple[int, ...],
        stem: Stem,
        law: str = "he",
        zero_biases: bool = False,
        bottleneck: bool = False,
        norm: Norm = nn.BatchNorm2d,
        padded: bool = False,
        preactivated: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        imagenet = stem == "imagenet"
        n_in = max(1, width // 10) if preactivated else width
        self.conv1 = conv(3, n_in, 7 if imagenet else 3, 1 if stem == "small" else 2)
        self.bn1 = nn.Identity() if preactivated else norm(width)
        self.relu = nn.Identity() if preactivated else nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if imagenet else nn.Identity()
        for i, depth in enumerate(depths):
            units = []
            for j in range(depth):
                stride = 2 if i > 0 and j == 0 else 1
                units.append(
                    Preactivated(n_in, width << i, stride, norm, dropout)
                    if preactivated
                    else Residual(n_in, width << i, stride, bottleneck, norm, padded)
                )
                n_in = (width << i) * (4 if bottleneck else 1)
            self.add_module(f"layer{i + 1}", nn.Sequential(*units))
        if preactivated:
            self.last = nn.Sequential(norm(n_in), nn.ReLU(inplace=True))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(n_in, num_classes) if num_classes else nn.Identity()
        _chains.initialize(self, law, zero_biases=False)
        if zero_biases:
            _chains.initialize(self, law)


def resnet_roles(model: nn.Module) -> RoleMap:
    """Return the roles: residual units are blocks, the first one with the stem.

    This gives K = 16 for ResNet-50, as in the reinitialization study, appendix C. What follows the
    last preactivated unit is in its block.
    """
    stages = {n: stage for n, stage in model.named_children() if n.startswith("layer")}
    units = [f"{n}.{unit}" for n, stage in stages.items() for unit in dict(stage.named_children())]
    blocks = [("conv1", "bn1", units[0]), *((unit,) for unit in units[1:])]
    if hasattr(model, "last"):
        blocks[-1] += ("last",)
    return RoleMap.of(model, blocks, tuple(stages))
