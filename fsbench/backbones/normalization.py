"""The affine parameters of a network: scale and shift of every normalization layer it holds.

Affine fine-tuning trains them and nothing else of a backbone (protocol.md 3): BatchNorm in the
source; LayerNorm, GroupNorm, InstanceNorm and RMSNorm, torch's and timm's, in other families.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from fsbench.backbones.roles import NORMS

TIMM = "timm.layers.norm"
"""Where timm defines its norms; some, such as RmsNorm, share no class with torch's."""


def affine_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Normalization layers that have a scale, by name, in module order; each layer once."""
    return {name: module for name, module in model.named_modules() if is_affine(module)}


def is_affine(module: nn.Module) -> bool:
    is_norm = isinstance(module, NORMS) or any(c.__module__ == TIMM for c in type(module).__mro__)
    return is_norm and isinstance(getattr(module, "weight", None), nn.Parameter)


def count_affine(model: nn.Module) -> int:
    """How many numbers affine fine-tuning trains besides the head: 53,120 for ResNet-50."""
    layers = affine_layers(model).values()
    return sum(p.numel() for layer in layers for p in layer.parameters(recurse=False))


def has_channels_first(layer: nn.Module) -> bool:
    """Whether its channels are axis 1 of the input, (B, C, ...); else they are the last axes.

    Batch, group and instance norms, and those that call themselves 2d, such as timm's and
    torchvision's LayerNorm2d.
    """
    kinds = (nn.modules.batchnorm._NormBase, nn.GroupNorm)
    return isinstance(layer, kinds) or any("2d" in c.__name__.lower() for c in type(layer).__mro__)


MEAN, STD = "normalizer_mean", "normalizer_std"
Shapes = Mapping[str, tuple[int, ...]]
"""Module name -> shape of mean and std: () for scalars, (C,) or (C, 1, 1) for channels."""


def insert_normalizers(model: nn.Module, shapes: Shapes) -> None:
    """Put an identity normaliser after each of these modules. Raises AttributeError for a name
    that the model does not have."""
    for name, shape in shapes.items():
        module = model.get_submodule(name)
        parameter = next(model.parameters())
        module.register_buffer(MEAN, parameter.new_zeros(shape))
        module.register_buffer(STD, parameter.new_ones(shape))
        module.register_forward_hook(normalize)


def normalize(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Forward hook; it finds the buffers on the module itself, so copies of a model stay whole."""
    mean, std = (module.get_buffer(name).to(output.dtype) for name in (MEAN, STD))
    return (output - mean) / std


def normalizer_shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Where the normalisers of a network stand: what `insert` needs to rebuild them."""
    return {
        name: tuple(module.get_buffer(MEAN).shape)
        for name, module in model.named_modules()
        if MEAN in dict(module.named_buffers(recurse=False))
    }


def normalizer_tensors(name: str) -> tuple[str, str]:
    """Names of mean and std of the normaliser after the module `name`."""
    return f"{name}.{MEAN}", f"{name}.{STD}"
