"""Plain feed-forward networks, and those of the reinitialization study.

Chains are the networks of "Soft Weight Rescaling", appendix D.1, with PyTorch's initial weights,
most of the reinitialization study, and VGG for CIFAR. Their modules are the stages `layer1`,
`layer2`, ..., hidden linear layers, which fix the image size, and the head `fc`. Every layer feeds
the next one alone.

The reinitialization study is "The Impact of Reinitialization on Generalization in Convolutional
Neural Networks", appendix C: layer normalisation is a group norm with one group (TensorFlow) after
every convolution and hidden dense layer; initial weights are He normal (appendix E). Where it is
silent: layers before a norm have no bias, as in ResNet and MobileNet, which makes soft weight
rescaling exact; the bias of the head starts at zero, as in Keras; epsilon is PyTorch's. The study
trains at 224 px: `--set input_size=224`.

The study's shallow MobileNet has 8 separable units: Howard et al. 2017, "MobileNets",
https://arxiv.org/abs/1704.04861, Table 1 without its five units of 14 x 14 x 512 (section 4). The
study counts K = 7 blocks without saying how. Our reading: the stem belongs to the first block, as
in its ResNet-50, and the last two units, of equal size, are one block.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap, layer_names

VALUES = 128
"""Inputs of the perceptron of the reinitialization study's synthetic experiment."""
Norm = Callable[[int], nn.Module]
"""Builder of a norm of so many channels, or of what takes its place."""
LAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "he": partial(nn.init.kaiming_normal_, mode="fan_in", nonlinearity="relu"),
    "he_uniform": partial(nn.init.kaiming_uniform_, mode="fan_in", nonlinearity="relu"),
    "he_fan_out": partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu"),
    "glorot": nn.init.xavier_uniform_,
    "vgg": lambda weight: LAWS["he_fan_out" if weight.ndim == 4 else "he_uniform"](weight),
}
"""Initial laws of convolutions and linear layers; glorot is Keras' default."""


class Chain(nn.Sequential):
    """Images (B, 3, side, side) -> logits (B, num_classes), or the last hidden values (B, D)."""

    def __init__(
        self,
        stages: list[nn.Module],
        hidden: list[tuple[str, int]],
        num_classes: int,
        n_values: int,
        layer_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        """Build the network.

        hidden: name and width of the linear layers between stages and head; n_values: values per
        image after the stages; layer_norm: replaces the biases of the hidden linear layers;
        dropout: rate in front of each hidden linear layer.
        """
        super().__init__()
        for i, stage in enumerate(stages, 1):
            self.add_module(f"layer{i}", stage)
        self.flatten = nn.Flatten()
        for name, width in hidden:
            if dropout:
                self.add_module(f"{name}_dropout", nn.Dropout(dropout))
            self.add_module(name, nn.Linear(n_values, width, bias=not layer_norm))
            if layer_norm:
                self.add_module(f"{name}_norm", nn.GroupNorm(1, width))
            self.add_module(f"{name}_relu", nn.ReLU())
            n_values = width
        self.fc = nn.Linear(n_values, num_classes) if num_classes else nn.Identity()


layer_norm = partial(nn.GroupNorm, 1)
"""Norm over channels and positions of an image, with scale and shift per channel."""


class Bias(nn.Module):
    """Learnable shift per channel of maps (B, C, H, W), zero at first: what NIO puts for a norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias[:, None, None]


def conv_unit(
    n_in: int, n_out: int, kernel: int, norm: Norm | None = layer_norm, **options: Any
) -> list[nn.Module]:
    """Return a convolution padded by 1, a norm instead of its bias if there is one, and ReLU.

    options: of the convolution, e.g. another padding.
    """
    conv = nn.Conv2d(n_in, n_out, kernel, bias=norm is None, **{"padding": 1, **options})
    return [conv, *([norm(n_out)] if norm else []), nn.ReLU(inplace=True)]


def initialize(model: nn.Module, law: str = "he", *, zero_biases: bool = True) -> nn.Module:
    """Initialise convolutions and linear layers again by a law of LAWS; return the model."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            LAWS[law](module.weight)
            if zero_biases and module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


def cnn(
    num_classes: int,
    width: int,
    side: int,
    stages: Sequence[tuple[int, int]],
    hidden: Mapping[str, float],
    norm: Norm | None = None,
    kernel: int = 3,
    law: str | None = None,
    dropout: float = 0.0,
) -> nn.Module:
    """Build stages of convolutions and a pooling each, and dense layers.

    stages: channels as a multiple of the width, and number of convolutions; hidden: units of a
    dense layer by its name, as a multiple too; norm: a layer norm acts on dense layers as well;
    law: of the initial weights, PyTorch's by default; dropout: in front of hidden dense layers.
    """
    modules: list[nn.Module] = []
    n_in, left = 3, side
    for multiple, depth in stages:
        channels = (n_in, *[multiple * width] * depth)
        units = [part for pair in pairwise(channels) for part in conv_unit(*pair, kernel, norm)]
        modules.append(nn.Sequential(*units, nn.MaxPool2d(2)))
        n_in, left = channels[-1], (left - depth * (kernel - 3)) // 2
    dense = [(name, max(1, int(multiple * width))) for name, multiple in hidden.items()]
    model = Chain(modules, dense, num_classes, n_in * left**2, norm is layer_norm, dropout)
    return initialize(model, law) if law else model


class First(nn.Module):
    """Layer that keeps the first VALUES values of each image."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :VALUES]


def perceptron(num_classes: int, width: int, side: int, law: str | None = None) -> nn.Module:
    """Build two hidden layers on the flattened image.

    law: of the initial weights, for the perceptron of the reinitialization study, which reads the
    first values only.
    """
    inputs, n_in = (First(), VALUES) if law else (nn.Flatten(), 3 * side * side)
    stages: list[nn.Module] = [
        nn.Sequential(inputs, nn.Linear(n_in, width), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True)),
    ]
    model = Chain(stages, [], num_classes, width)
    return initialize(model, law) if law else model


def chain_roles(model: nn.Module, blocks: Literal["stages", "units"] = "stages") -> RoleMap:
    """Return the roles of a chain; linear layers after the first block are fully connected.

    blocks: the stages, or the convolutions in them, each with its norm and its ReLU. With the first
    layer of a perceptron as its trunk, `fc` reproduces Table 1 of the reinitialization study.
    """
    stages = tuple(name for name, _ in model.named_children() if name.startswith("layer"))
    linear = (n for n in layer_names(model)[1:] if isinstance(model.get_submodule(n), nn.Linear))
    units = [unit for stage in stages for unit in conv_units(model, stage)]
    chosen = units if blocks == "units" else [(name,) for name in stages]
    return RoleMap.of(model, chosen, stages, tuple(linear), chain=True)


def conv_units(model: nn.Module, stage: str) -> list[tuple[str, ...]]:
    """Return the convolutions of a stage, each with its norm and its ReLU, without the pooling."""
    units: list[tuple[str, ...]] = []
    for name, module in model.get_submodule(stage).named_children():
        if isinstance(module, nn.Conv2d):
            units.append((f"{stage}.{name}",))
        elif units and not isinstance(module, nn.MaxPool2d):
            units[-1] += (f"{stage}.{name}",)
    return units


MOBILE_STAGES = ((2, 1, 1), (4, 2, 2), (8, 2, 2), (16, 2, 1), (32, 2, 2))
"""Of MobileNet: channels as a multiple of the width, stride of the first unit, units."""


def separable(n_in: int, n_out: int, stride: int = 1) -> nn.Sequential:
    """Return a depthwise 3x3 convolution followed by a 1x1 convolution."""
    depthwise = conv_unit(n_in, n_in, 3, stride=stride, groups=n_in)
    pointwise = conv_unit(n_in, n_out, 1, padding=0)
    return nn.Sequential(nn.Sequential(*depthwise), nn.Sequential(*pointwise))


def mobilenet(num_classes: int, width: int) -> nn.Module:
    """Build the MobileNet: images (B, 3, H, W) -> logits, or features (B, 32 width)."""
    layers = {"stem": nn.Sequential(*conv_unit(3, width, 3, stride=2))}
    n_in = width
    for i, (multiple, stride, depth) in enumerate(MOBILE_STAGES):
        n_out = multiple * width
        rest = [separable(n_out, n_out) for _ in range(depth - 1)]
        layers[f"layer{i + 1}"] = nn.Sequential(separable(n_in, n_out, stride), *rest)
        n_in = n_out
    head = nn.Linear(n_in, num_classes) if num_classes else nn.Identity()
    pooling = {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
    return initialize(nn.Sequential(OrderedDict({**layers, **pooling, "fc": head})))


def mobilenet_roles(model: nn.Module) -> RoleMap:
    """Return the roles with K = 7 blocks, see the module docstring."""
    depths = {f"layer{i + 1}": depth for i, (_, _, depth) in enumerate(MOBILE_STAGES)}
    units = [f"{stage}.{j}" for stage, depth in depths.items() for j in range(depth)]
    blocks = (("stem", units[0]), *((unit,) for unit in units[1:-2]), tuple(units[-2:]))
    return RoleMap.of(model, blocks, tuple(depths))
