"""The parameters as they were at the start, kept with the run: what L2 Init and the resets go to.

Stored after initialization methods have acted, in the method's memory and so in every checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fsbench.core.errors import UsageError
from pretrain.weights import surgery

if TYPE_CHECKING:
    from pretrain.method import Method
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

KEY = "stored "
"""Memory key of a stored tensor: this and its name."""


def parameter_names(ctx: Context) -> tuple[str, ...]:
    """All parameters of the plain architecture: kernels, biases, norm scales and shifts."""
    with torch.device("meta"):
        plain = ctx.architecture.build(ctx.classes, ctx.recipe.width)
    return tuple(name for name, _ in plain.named_parameters())


def store(ctx: Context, names: Iterable[str]) -> None:
    """Keep copies of these effective tensors as they are now."""
    for name in names:
        ctx.memory[KEY + name] = surgery.get_weight(ctx.model, name).detach().clone()


def stored(ctx: Context) -> dict[str, Tensor]:
    """What was kept, by name."""
    return {n.removeprefix(KEY): t for n, t in ctx.memory.items() if n.startswith(KEY)}


def need_stages(method: Method, recipe: Recipe) -> None:
    """Raises UsageError where no new data arrives, so that the method would never act."""
    if len(recipe.plan.stages) < 2:
        raise UsageError(
            f"{method.name} would never act: it acts when new data arrive, and the plan has one"
            " stage",
            fix="give the plan more stages (--scenario warm-start)",
        )
