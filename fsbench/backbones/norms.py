"""The affine parameters of a network: scale and shift of every normalization layer it holds.

Affine fine-tuning trains them and nothing else of a backbone (protocol.md 3): BatchNorm in the
source; LayerNorm, GroupNorm, InstanceNorm and RMSNorm, torch's and timm's, in other families.
"""

from __future__ import annotations

from torch import nn

from fsbench.backbones.architectures._roles import NORMS

TIMM = "timm.layers.norm"
"""Where timm defines its norms; some, such as RmsNorm, share no class with torch's."""


def affine_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Normalization layers that have a scale, by name, in module order; each layer once."""
    return {name: module for name, module in model.named_modules() if is_affine(module)}


def is_affine(module: nn.Module) -> bool:
    known = isinstance(module, NORMS) or any(c.__module__ == TIMM for c in type(module).__mro__)
    return known and isinstance(getattr(module, "weight", None), nn.Parameter)


def n_affine(model: nn.Module) -> int:
    """How many numbers affine fine-tuning trains besides the head: 53,120 for ResNet-50."""
    layers = affine_layers(model).values()
    return sum(p.numel() for layer in layers for p in layer.parameters(recurse=False))


def channels_first(layer: nn.Module) -> bool:
    """Whether its channels are axis 1 of the input, (B, C, ...); else they are the last axes.

    Batch, group and instance norms, and those that call themselves 2d, such as timm's and
    torchvision's LayerNorm2d.
    """
    kinds = (nn.modules.batchnorm._NormBase, nn.GroupNorm)
    return isinstance(layer, kinds) or any("2d" in c.__name__.lower() for c in type(layer).__mro__)
