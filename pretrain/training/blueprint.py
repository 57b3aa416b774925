"""The network of a recipe without storage: what methods check a recipe against before it runs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from fsbench.backbones.architectures import ARCHITECTURES, RoleMap

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe


def blueprint(recipe: Recipe) -> tuple[nn.Module, RoleMap]:
    """A model on the meta device (two classes) and its roles; not to be changed."""
    return _blueprint(recipe.architecture, recipe.width, recipe.input_size)


@cache
def _blueprint(architecture: str, width: int | None, side: int) -> tuple[nn.Module, RoleMap]:
    found = ARCHITECTURES.load(architecture).at(side)
    with torch.device("meta"):
        model = found.build(2, width)
    return model, found.roles(model)
