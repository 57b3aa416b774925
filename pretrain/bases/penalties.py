"""Quadratic penalties on weights, towards zero or towards stored anchors.

(lam / 2) |w - a|^2 adds lam (w - a) to the gradient of w: a few foreach calls per step instead of a
loss term. Under a reparametrization w is the effective weight, and the chain rule gives the
gradient of the trained tensors. Anchors are the parameters at the start, after initialization
methods have acted; they are in the method's memory and so in every checkpoint.
"""

from collections.abc import Iterable, Mapping
from typing import cast

import torch
from torch import Tensor, nn

from pretrain.training.context import Context
from pretrain.weights import surgery


def pull(ctx: Context, anchors: Mapping[str, Tensor | None], lam: float) -> None:
    """Add lam (w - anchor) to the gradients of effective tensors, lam w where it is None."""
    trained = {n: ctx.parameters[n] for n in anchors if n in ctx.parameters}
    trained = {name: parameter for name, parameter in trained.items() if parameter.grad is not None}
    values = [parameter.detach() for parameter in trained.values()]
    stored = [anchor for name in trained if (anchor := anchors[name]) is not None]
    if stored:
        values = list(torch._foreach_sub(values, stored))
    if values:
        gradients = [cast("Tensor", parameter.grad) for parameter in trained.values()]
        torch._foreach_add_(gradients, values, alpha=lam)
    for name, anchor in anchors.items():
        if name not in ctx.parameters:
            _pull_through_map(ctx.model, name, 0.0 if anchor is None else anchor, lam)


def _pull_through_map(model: nn.Module, name: str, anchor: Tensor | float, lam: float) -> None:
    """Add the penalty's gradient through a map; w is computed again, as its graph is freed."""
    owner, _, leaf = name.rpartition(".")
    maps = cast("nn.ModuleDict", model.get_submodule(owner).parametrizations)
    with torch.enable_grad():
        weight = maps[leaf]()
    if weight.requires_grad:
        torch.autograd.backward(weight, lam * (weight.detach() - anchor))


ANCHOR_KEY = "stored "
"""Prefix of the memory key of a stored tensor; its name follows."""


def store_anchors(ctx: Context, names: Iterable[str]) -> None:
    """Store copies of these effective tensors in the acting method's memory."""
    for name in names:
        ctx.memory[ANCHOR_KEY + name] = surgery.get_weight(ctx.model, name).detach().clone()


def stored_anchors(ctx: Context) -> dict[str, Tensor]:
    """Return the stored copies by name."""
    return {
        n.removeprefix(ANCHOR_KEY): t for n, t in ctx.memory.items() if n.startswith(ANCHOR_KEY)
    }
