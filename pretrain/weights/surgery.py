"""Pure operations on the weights of a network, by name.

Names are those of the plain architecture (`layer3.0.conv1.weight`). The effective weight is read
and written, the one that forward uses: under a reparametrization writing goes through its inverse
(torch.nn.utils.parametrize), so every method composes with every reparametrization (methods.md 0).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import ARCHITECTURES, RoleMap
from fsbench.backbones.roles import below
from pretrain.weights import parametrizations

if TYPE_CHECKING:
    from fsbench.backbones.architectures import Architecture
    from pretrain.recipes.recipe import Recipe


END = "end"
"""Threshold after the last layer: everything is early."""


def get_weight(model: nn.Module, name: str) -> Tensor:
    """The effective tensor called `name`, a parameter or a buffer."""
    owner, _, leaf = name.rpartition(".")
    value = getattr(model.get_submodule(owner), leaf)
    if not isinstance(value, Tensor):
        raise AttributeError(f"{name} is no tensor of the model")
    return value


@torch.no_grad()
def set_weight(model: nn.Module, name: str, value: Tensor) -> None:
    """Make `value` the effective tensor called `name`."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    if nn.utils.parametrize.is_parametrized(module, leaf):
        parametrizations.assign_weight(module, leaf, value)
    else:
        get_weight(model, name).copy_(value)


def trained_names(model: nn.Module, name: str) -> tuple[str, ...]:
    """Names of the tensors that are trained in place of the effective tensor `name`."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    if not nn.utils.parametrize.is_parametrized(module, leaf):
        return (name,)
    inside = f"{owner}.parametrizations.{leaf}" if owner else f"parametrizations.{leaf}"
    holder = model.get_submodule(inside)
    return tuple(f"{inside}.{original}" for original, _ in holder.named_parameters(recurse=False))


def total_clamped(model: nn.Module, names: Iterable[str]) -> int:
    """Elements of these tensors that a bounded reparametrization moved into its range so far."""
    owners = (name.rpartition(".") for name in names)
    return sum(
        parametrizations.count_clamped(model.get_submodule(o), leaf) for o, _, leaf in owners
    )


def split_parameters(model: nn.Module, threshold: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parameter names before the module `threshold`, and from it on; norm parameters included."""
    if threshold == END:
        return tuple(name for name, _ in model.named_parameters()), ()
    return RoleMap.from_threshold(model, threshold)


def kernel_names(layers: Iterable[str], parameters: Iterable[str]) -> tuple[str, ...]:
    """The weights of those convolution and linear layers that own one of the parameters."""
    owners = {
        ".".join(name.split(".")[:i]) for name in parameters for i in range(1, name.count(".") + 1)
    }
    return tuple(f"{layer}.weight" for layer in layers if layer in owners)


def draw_initial(architecture: Architecture, classes: int, width: int | None) -> dict[str, Tensor]:
    """The tensors of a freshly built network, drawn from the stream that is open."""
    return dict(architecture.build(classes, width).state_dict())


def plain_names(architecture: Architecture, classes: int, width: int | None) -> tuple[str, ...]:
    """Names of all tensors of the plain network, in the order of registration."""
    with torch.device("meta"):
        return tuple(architecture.build(classes, width).state_dict())


def frobenius_norm(weight: Tensor) -> float:
    """Frobenius norm, accumulated in float64."""
    return float(torch.linalg.vector_norm(weight.detach(), dtype=torch.float64))


def kaiming_uniform_sqrt5(like: Tensor) -> Tensor:
    """A kernel with std 1 / sqrt(3 fan_in): what official LLF and SEAL code re-draws."""
    return nn.init.kaiming_uniform_(torch.empty(like.shape), a=5**0.5)


def fraction_changed(old: Iterable[Tensor], new: Iterable[Tensor]) -> float:
    """Part of all elements that differ."""
    pairs = [(int((a != b).sum()), a.numel()) for a, b in zip(old, new, strict=True)]
    return sum(changed for changed, _ in pairs) / max(1, sum(n for _, n in pairs))


def build_on_meta(recipe: Recipe) -> tuple[nn.Module, RoleMap]:
    """A model on the meta device (two classes) and its roles; not to be changed."""
    return _build_on_meta(recipe.architecture, recipe.width, recipe.input_size)


@cache
def _build_on_meta(architecture: str, width: int | None, side: int) -> tuple[nn.Module, RoleMap]:
    found = ARCHITECTURES.load(architecture).at(side)
    with torch.device("meta"):
        model = found.build(2, width)
    return model, found.roles(model)


AUTO = "auto"
PAPER_THRESHOLD = "layer3"
EARLY_SHARE = 7 / 16
"""Part of the blocks of a ResNet-50 that lie before its `layer3`."""


def find_threshold(recipe: Recipe, threshold: str) -> str:
    """The module that the threshold means in the recipe's network, or surgery.END.

    Raises UnknownName for a module that the network does not have.
    """
    model, roles = build_on_meta(recipe)
    name = default_threshold(roles) if threshold == AUTO else threshold
    split_parameters(model, name)
    return name


def default_threshold(roles: RoleMap) -> str:
    """What `auto` means in a network with these roles."""
    if PAPER_THRESHOLD in roles.stages:
        return PAPER_THRESHOLD
    before = max(1, round(EARLY_SHARE * len(roles.blocks)))
    late = roles.blocks[before] if before < len(roles.blocks) else roles.fully_connected
    return next(layer for layer in roles.layers if below(layer, late))


def late_modules(model: nn.Module, threshold: str) -> list[nn.Module]:
    """The modules from `threshold` on, in the order of registration."""
    names, modules = zip(*model.named_modules(), strict=True)
    start = len(names) if threshold == END else names.index(threshold)
    return list(modules[start:])
