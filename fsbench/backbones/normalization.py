"""Normalization layers: the affine parameters of a network, and fixed normalisers in it.

Affine tuning trains only scale and shift of every normalization layer: BatchNorm in the official
code (protocols/README.md, "Affine tuning"); LayerNorm, GroupNorm, InstanceNorm and RMSNorm of torch
and timm in other families.

Fixed normalisers z -> (z - mean) / std after modules are not trained. `lw` puts them after blocks
("The Impact of Reinitialization on Generalization in Convolutional Neural Networks", Algorithm 1)
and they stay: a run records their places and `run:` restores them. Mean and std are buffers of the
module whose output they normalise, so they are in every state dict and no name of the plain
architecture changes. A fresh one (0 and 1) changes no bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from fsbench.backbones.architectures import NORMS

TIMM = "timm.layers.norm"
"""Module of timm's norms; some, such as RmsNorm, share no class with torch's."""


def affine_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return the normalization layers that have a scale, by name, in module order."""
    return {name: module for name, module in model.named_modules() if is_affine(module)}


def is_affine(module: nn.Module) -> bool:
    """Return whether a module is a normalization layer with a scale."""
    is_norm = isinstance(module, NORMS) or any(c.__module__ == TIMM for c in type(module).__mro__)
    return is_norm and isinstance(getattr(module, "weight", None), nn.Parameter)


def count_affine(model: nn.Module) -> int:
    """Count the parameters that affine tuning trains besides the head: 53,120 for ResNet-50."""
    layers = affine_layers(model).values()
    return sum(p.numel() for layer in layers for p in layer.parameters(recurse=False))


def has_channels_first(layer: nn.Module) -> bool:
    """Return whether the channels are axis 1 of the input, (B, C, ...), instead of the last axes.

    True for batch, group and instance norms, and classes named 2d, such as the LayerNorm2d of timm
    and torchvision.
    """
    kinds = (nn.modules.batchnorm._NormBase, nn.GroupNorm)
    return isinstance(layer, kinds) or any("2d" in c.__name__.lower() for c in type(layer).__mro__)


MEAN, STD = "normalizer_mean", "normalizer_std"
Shapes = Mapping[str, tuple[int, ...]]
"""Module name -> shape of mean and std: () for scalars, (C,) or (C, 1, 1) for channels."""


def insert_normalizers(model: nn.Module, shapes: Shapes) -> None:
    """Insert an identity normaliser after each module. Raise AttributeError for a missing one."""
    for name, shape in shapes.items():
        module = model.get_submodule(name)
        parameter = next(model.parameters())
        module.register_buffer(MEAN, parameter.new_zeros(shape))
        module.register_buffer(STD, parameter.new_ones(shape))
        module.register_forward_hook(normalize)


def normalize(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Normalise an output (forward hook); buffers are on the module, so copies of it work too."""
    mean, std = (module.get_buffer(name).to(output.dtype) for name in (MEAN, STD))
    return (output - mean) / std


def normalizer_shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the places and shapes of the normalisers, as `insert_normalizers` takes them."""
    return {
        name: tuple(module.get_buffer(MEAN).shape)
        for name, module in model.named_modules()
        if MEAN in dict(module.named_buffers(recurse=False))
    }


def normalizer_tensors(name: str) -> tuple[str, str]:
    """Return the names of mean and std of the normaliser after module `name`."""
    return f"{name}.{MEAN}", f"{name}.{STD}"
