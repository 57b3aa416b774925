"""Masks over weights: the elements that a method selects, and what replaces them.

WELSR, DSD, WELS, KELS and IMP are all a mask and a fill. A mask is a bool tensor in the shape of
its weight, True for the selected elements.
"""

import math
from collections.abc import Mapping, MutableMapping
from typing import Literal

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from pretrain.training.context import Context
from pretrain.weights import surgery

Masks = Mapping[str, Tensor]
Scope = Literal["layer", "global"]
Fill = Literal["init", "zero"]


def floor_count(fraction: float, n: int) -> int:
    """Return floor(fraction n) without a rounding error: 0.29 of 100 is 29."""
    return math.floor(fraction * n + 1e-9)


def bernoulli_mask(shape: torch.Size, p: float, generator: torch.Generator) -> Tensor:
    """Return a mask that selects every element independently with probability p."""
    return torch.rand(shape, generator=generator) < p


def uniform_mask(shape: torch.Size, fraction: float, generator: torch.Generator) -> Tensor:
    """Return a mask of floor(fraction n) elements, uniform among all such masks."""
    n = shape.numel()
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.randperm(n, generator=generator)[: floor_count(fraction, n)]] = True
    return mask.view(shape)


def smallest_masks(
    values: Mapping[str, Tensor], fraction: float, scope: Scope
) -> dict[str, Tensor]:
    """Return masks of the floor(fraction n) smallest |values|; ties go to the earlier element."""
    if scope == "layer":
        return {name: _smallest_mask(value, fraction) for name, value in values.items()}
    flat = torch.cat([value.detach().reshape(-1) for value in values.values()])
    sizes = [value.numel() for value in values.values()]
    parts = torch.split(_smallest_mask(flat, fraction), sizes)
    return {n: part.view_as(values[n]) for n, part in zip(values, parts, strict=True)}


def _smallest_mask(value: Tensor, fraction: float) -> Tensor:
    flat = value.detach().abs().reshape(-1)
    mask = torch.zeros_like(flat, dtype=torch.bool)
    mask[flat.argsort(stable=True)[: floor_count(fraction, len(flat))]] = True
    return mask.view(value.shape)


def effective_kernels(ctx: Context) -> dict[str, Tensor]:
    """Return the effective weights of all convolutions and linear layers, including the head."""
    names = [f"{layer}.weight" for layer in ctx.roles.layers]
    return {name: surgery.get_weight(ctx.model, name).detach() for name in names}


def refill_masked(ctx: Context, masks: Masks, note: str, fill: Fill = "init") -> None:
    """Replace the selected elements by fresh draws or zeros; tensors with none are unchanged."""
    selected = {name: mask.to(ctx.device) for name, mask in masks.items() if mask.any()}
    if not selected:
        return
    old = {name: surgery.get_weight(ctx.model, name).detach() for name in selected}
    if fill == "init":
        fresh = ctx.fresh(selected)
    else:
        fresh = {name: torch.zeros_like(value) for name, value in old.items()}
    new = {n: torch.where(selected[n], fresh[n].to(ctx.device), old[n]) for n in selected}
    ctx.rewrite(new, note)


@torch.no_grad()
def hold_at_zero(ctx: Context, keep: Masks) -> None:
    """Set the weights outside `keep` to zero after a step, which momentum and decay may move.

    keep: bool masks, True where the weight stays. All plain weights take one multiplication; a
    reparametrized weight is assigned through its inverse.
    """
    multiply_masks({n: p for n, p in ctx.parameters.items() if n in keep}, keep)
    for name in keep.keys() - ctx.parameters.keys():
        weight = surgery.get_weight(ctx.model, name)
        surgery.set_weight(ctx.model, name, weight * keep[name])


@torch.no_grad()
def mask_gradients(ctx: Context, keep: Masks) -> None:
    """Zero the gradients outside `keep`, so that no momentum builds up there."""
    gradients = {n: p.grad for n, p in ctx.parameters.items() if n in keep}
    multiply_masks({n: g for n, g in gradients.items() if g is not None}, keep)


_factors: MutableMapping[Tensor, Tensor] = WeakTensorKeyDictionary()
"""Masks, which never change, as factors: torch would multiply masks of bytes one by one."""


def multiply_masks(tensors: Mapping[str, Tensor], masks: Masks) -> None:
    """Multiply tensors by masks, in place and at once: by factors of their type and layout."""
    factors: list[Tensor] = []
    for name, tensor in tensors.items():
        factor = _factors.get(masks[name])
        if factor is None:
            _factors[masks[name]] = factor = torch.empty_like(tensor).copy_(masks[name])
        factors.append(factor)
    if factors:
        torch._foreach_mul_(list(tensors.values()), factors)
