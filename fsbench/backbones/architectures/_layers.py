"""Layers, initial weights and plain feed-forward networks that several architectures share.

Chains are the networks of "Soft Weight Rescaling", appendix D.1, with PyTorch's initial weights,
and two of the reinitialization study. Their modules are the stages `layer1`, `layer2`, ..., hidden
linear layers and the head `fc`. Every layer feeds the next one, which the theorems of the former
paper need. The linear layers fix the image size, so another one is refused with a message.

The reinitialization study is "The Impact of Reinitialization on Generalization in Convolutional
Neural Networks", appendix C: layer normalisation is a group norm with one group (TensorFlow) after
every convolution and hidden dense layer; initial weights are He normal (appendix E). Where it is
silent: layers before a norm have no bias, as in ResNet and MobileNet, which makes soft weight
rescaling exact; the bias of the head starts at zero, as in Keras; epsilon is PyTorch's. The study
trains at 224 px: `--set input_size=224`.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap, layer_names, weighted_names
from fsbench.core.errors import UsageError


class Chain(nn.Module):
    """Images (B, 3, side, side) -> logits (B, num_classes), or the last hidden values (B, D)."""

    def __init__(
        self,
        stages: list[nn.Module],
        hidden: list[tuple[str, int]],
        num_classes: int,
        side: int,
        n_values: int,
        layer_norm: bool = False,
    ) -> None:
        """Build the network.

        hidden: name and width of the linear layers between stages and head; n_values: values per
        image after the stages; layer_norm: replaces the biases of the hidden linear layers.
        """
        super().__init__()
        self.side = side
        for i, stage in enumerate(stages):
            self.add_module(f"layer{i + 1}", stage)
        for name, width in hidden:
            self.add_module(name, nn.Linear(n_values, width, bias=not layer_norm))
            if layer_norm:
                self.add_module(f"{name}_norm", nn.GroupNorm(1, width))
            n_values = width
        self.hidden = tuple(name for name, _ in hidden)
        self.layer_norm = layer_norm
        self.stages = tuple(f"layer{i + 1}" for i in range(len(stages)))
        self.fc = nn.Linear(n_values, num_classes) if num_classes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2:] != (self.side, self.side):
            raise UsageError(
                f"this network was built for {self.side} px, the images have"
                f" {x.shape[-2]} x {x.shape[-1]}",
                fix=f"use --input-size {self.side} (or native)",
            )
        for name in self.stages:
            x = getattr(self, name)(x)
        x = torch.flatten(x, 1)
        for name in self.hidden:
            x = getattr(self, name)(x)
            x = getattr(self, f"{name}_norm")(x) if self.layer_norm else x
            x = x.relu()
        out: Tensor = self.fc(x)
        return out


def conv_unit(n_in: int, n_out: int, kernel: int, norm: bool) -> list[nn.Module]:
    """Return a convolution padded by 1, batch norm instead of bias if `norm`, and ReLU."""
    conv = nn.Conv2d(n_in, n_out, kernel, padding=1, bias=not norm)
    return [conv, *([nn.BatchNorm2d(n_out)] if norm else []), nn.ReLU(inplace=True)]


def small_image_error(name: str, side: int, least: int) -> UsageError:
    """Return the error for images that pooling would shrink to nothing."""
    return UsageError(
        f"fsbench/{name} needs images of at least {least} px, not {side}",
        fix=f"use --set input_size={least} or larger",
    )


def chain_roles(model: nn.Module) -> RoleMap:
    """Return the roles of a chain: stages are blocks, linear layers after them fully connected."""
    if not isinstance(model, Chain):
        raise TypeError(f"{type(model).__name__} is no Chain")
    layers = layer_names(model)
    linear = tuple(n for n in layers if isinstance(model.get_submodule(n), nn.Linear))
    return RoleMap(
        layers=layers,
        blocks=tuple((name,) for name in model.stages),
        head="fc",
        fully_connected=linear,
        stages=model.stages,
        weighted=weighted_names(model),
        chain=True,
    )


UNIT = 3
"""Modules per convolution of a stage: convolution, norm, ReLU."""


def chain_unit_roles(model: nn.Module) -> RoleMap:
    """Return roles for stages of normed convolutions and pooling: each convolution is a block."""
    role_map = chain_roles(model)
    depths = {s: len(list(model.get_submodule(s).children())) // UNIT for s in role_map.stages}
    blocks = tuple(
        tuple(f"{stage}.{UNIT * unit + part}" for part in range(UNIT))
        for stage, depth in depths.items()
        for unit in range(depth)
    )
    return replace(role_map, blocks=blocks)


INPUT_SIZE = 64
"""Default side (px), that of TinyImageNet."""


def layer_norm(channels: int) -> nn.GroupNorm:
    """Return a norm over channels and positions of an image, with scale and shift per channel."""
    return nn.GroupNorm(1, channels)


def normed_conv(n_in: int, n_out: int) -> list[nn.Module]:
    """Return a 3x3 convolution that keeps the size, norm and ReLU."""
    conv = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
    return [conv, layer_norm(n_out), nn.ReLU(inplace=True)]


def initialize_he(model: nn.Module) -> nn.Module:
    """Initialise kernels by He normal (fan-in) and biases by zero; return the model."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model
