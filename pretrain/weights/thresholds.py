"""Where SEAL and LLF cut a network in two: at a module that is named, or found by its depth.

SEAL, section 4.1: L = 23 in a ResNet-50, the first layer of `layer3`; 7 of its 16 blocks lie before
(methods.md 0, D3). `auto` is `layer3` in networks with such a stage. In others it is the first
layer that has the same share of the K blocks before it, round(7 K / 16), one at least; with a
single block these are the fully-connected layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.architectures._roles import below
from pretrain.training.blueprint import blueprint
from pretrain.weights import surgery

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

AUTO = "auto"
PAPERS = "layer3"
SHARE = 7 / 16
"""Part of the blocks of a ResNet-50 that lie before its `layer3`."""


def find(recipe: Recipe, threshold: str) -> str:
    """The module that the threshold means in the recipe's network, or surgery.END.

    Raises UnknownName for a module that the network does not have.
    """
    model, roles = blueprint(recipe)
    name = automatic(roles) if threshold == AUTO else threshold
    surgery.split(model, name)
    return name


def automatic(roles: RoleMap) -> str:
    """What `auto` means in a network with these roles."""
    if PAPERS in roles.stages:
        return PAPERS
    before = max(1, round(SHARE * len(roles.blocks)))
    late = roles.blocks[before] if before < len(roles.blocks) else roles.fully_connected
    return next(layer for layer in roles.layers if below(layer, late))


def late_modules(model: nn.Module, threshold: str) -> list[nn.Module]:
    """The modules from `threshold` on, in the order of registration."""
    names, modules = zip(*model.named_modules(), strict=True)
    start = len(names) if threshold == surgery.END else names.index(threshold)
    return list(modules[start:])
