"""Weights as functions of trained tensors, w = Psi(v), through torch.nn.utils.parametrize.

A map is the module that parametrize registers: `forward` returns w, `right_inverse` the v of a
given w. `update` assigns a new w without moving the elements that did not change, and `decay`
returns the gradient of weight decay on w by the trained tensors.

Everything is plain autograd, so gradients of any order are correct; on two cores it costs 5 % of a
step of ResNet-18 at 64 px. Under an adaptive optimizer a map is `raw`: v then receives the gradient
of w, from which the adaptive step must be computed (see reparametrization.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from pretrain.method import Method
from pretrain.recipes.recipe import ActingOrder
from pretrain.training.optimizer import ParameterGroup

Originals = tuple[Tensor, ...]
"""Tensors that are trained in place of one weight: (v,), or (g, v) for weight normalization."""


class WeightMap(nn.Module, ABC):
    """The map Psi of one reparametrized weight."""

    @abstractmethod
    def forward(self, *originals: Tensor) -> Tensor:
        """Return the effective weight."""

    @abstractmethod
    def right_inverse(self, weight: Tensor) -> Tensor | Originals:
        """Return trained tensors whose effective weight is `weight`."""

    @abstractmethod
    def update(self, weight: Tensor, *originals: Tensor) -> Originals:
        """Return as `right_inverse`, but leave unchanged elements equal to the bit."""

    @abstractmethod
    def decay(self, weight: Tensor, *originals: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield trained tensors with the gradient of |w|^2 / 2 by them, where it is not zero."""


class Elementwise(WeightMap):
    """Map w = psi(v) for every element; raw: v receives the gradient of w instead of its own."""

    def __init__(self, raw: bool) -> None:
        super().__init__()
        self.raw = raw

    @abstractmethod
    def value(self, v: Tensor) -> Tensor:
        """Return psi(v)."""

    @abstractmethod
    def slope(self, v: Tensor) -> Tensor:
        """Return psi'(v)."""

    def forward(self, *originals: Tensor) -> Tensor:
        (v,) = originals
        # v - v is exactly 0 and passes the gradient through
        return self.value(v.detach()) + (v - v.detach()) if self.raw else self.value(v)

    def update(self, weight: Tensor, *originals: Tensor) -> Originals:
        (v,) = originals
        changed = weight != self.value(v)
        inverse = self.right_inverse(torch.where(changed, weight, 0))
        return (torch.where(changed, cast("Tensor", inverse), v),)

    def decay(self, weight: Tensor, *originals: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        (v,) = originals
        yield v, weight if self.raw else self.slope(v).mul_(weight)


def find_map(module: nn.Module, leaf: str = "weight") -> tuple[WeightMap, Originals] | None:
    """Return the map of a weight and its trained tensors; None if the weight has none of ours."""
    if not parametrize.is_parametrized(module, leaf):
        return None
    holder = cast("nn.ModuleDict", module.parametrizations)[leaf]
    mapping = cast("nn.ModuleList", holder)[0]
    if not isinstance(mapping, WeightMap):
        return None
    return mapping, tuple(holder.parameters(recurse=False))


@torch.no_grad()
def assign_weight(module: nn.Module, leaf: str, weight: Tensor) -> None:
    """Make `weight` the effective weight; tensors keep their storage and memory format."""
    mapped = find_map(module, leaf)
    if mapped is None:
        setattr(module, leaf, weight)
        return
    mapping, originals = mapped
    weight = torch.empty_like(originals[-1]).copy_(weight)
    for original, new in zip(originals, mapping.update(weight, *originals), strict=True):
        original.copy_(new)


def count_clamped(module: nn.Module, leaf: str = "weight") -> int:
    """Return the number of elements that a bounded map has moved into its range so far."""
    mapped = find_map(module, leaf)
    return int(getattr(mapped[0], "clamped", 0)) if mapped else 0


if TYPE_CHECKING:
    from pretrain.training.context import Context


def layer_modules(ctx: Context) -> Iterator[nn.Module]:
    """Return the convolutions and linear layers, in forward order."""
    return (ctx.model.get_submodule(name) for name in ctx.roles.layers)


def iterate_maps(ctx: Context) -> Iterator[tuple[nn.Module, WeightMap, Originals]]:
    """Yield module, map and trained tensors of the reparametrized layers."""
    for module in layer_modules(ctx):
        mapped = find_map(module)
        if mapped is not None:
            yield module, *mapped


class Reparametrization(Method):
    """Base of the reparametrizing methods; a subclass defines the map of a layer."""

    RANK: ClassVar = ActingOrder.REPARAMETRIZATION

    def maps(self, ctx: Context) -> Iterator[WeightMap]:
        """Yield a new map for every layer, in their order."""
        raise NotImplementedError

    @property
    def decays(self) -> Literal["w", "v"]:
        """Return whether weight decay acts on the effective (w) or on the trained weights (v)."""
        return "w"

    def setup(self, ctx: Context) -> None:
        """Register the maps, and log when an initial weight had to be moved into a map's range."""
        modules = list(layer_modules(ctx))
        for module, mapping in zip(modules, self.maps(ctx), strict=True):
            parametrize.register_parametrization(module, "weight", mapping)
        moved = {n: count_clamped(m) for n, m in zip(ctx.roles.layers, modules, strict=True)}
        names = tuple(f"{name}.weight" for name, count in moved.items() if count)
        if names and not ctx.resumed:
            total = sum(weight_size(module) for module in modules)
            fraction = sum(moved.values()) / total
            note = f"{sum(moved.values())} of {total} initial elements clamped to the range"
            ctx.log(names, fraction, note)

    def param_groups(self, ctx: Context, groups: list[ParameterGroup]) -> list[ParameterGroup]:
        """Return groups in which trained weights decay by `decays` and scalars of maps do not."""
        trained = {id(v) for _, _, originals in iterate_maps(ctx) for v in originals}
        scalars = {id(p) for _, mapping, _ in iterate_maps(ctx) for p in mapping.parameters()}

        def part(group: ParameterGroup, ids: set[int], inside: bool = True) -> tuple[str, ...]:
            return tuple(n for n in group.names if (id(ctx.parameters[n]) in ids) is inside)

        decay_on: Literal["effective", "trained"] = "effective" if self.decays == "w" else "trained"
        return [
            new
            for group in groups
            for new in (
                replace(group, names=part(group, trained | scalars, False)),
                replace(group, names=part(group, trained), decay_on=decay_on),
                replace(group, names=part(group, scalars), decay=0.0),
            )
        ]

    @torch.no_grad()
    def before_step(self, ctx: Context) -> None:
        """Add weight decay on w to the gradients, with the sign and size of the groups."""
        rates = {
            id(p): group["effective_decay"]
            for group in ctx.optimizer.param_groups
            for p in group["params"]
            if group["effective_decay"]
        }
        terms: dict[float, tuple[list[Tensor], list[Tensor]]] = {}
        for module, mapping, originals in iterate_maps(ctx) if rates else ():
            for trained, direction in mapping.decay(module.weight, *originals):  # type: ignore[arg-type]
                if id(trained) in rates and trained.grad is not None:
                    gradients, directions = terms.setdefault(rates[id(trained)], ([], []))
                    gradients.append(trained.grad)
                    directions.append(direction)
        for rate, (gradients, directions) in terms.items():
            torch._foreach_add_(gradients, directions, alpha=rate)

    def finalize(self, ctx: Context) -> None:
        """Replace every map by the plain weight Psi(v), to the bit; log the clamped elements."""
        modules = list(layer_modules(ctx))
        total = sum(count_clamped(module) for module in modules)
        if total:
            ctx.log((), 0.0, f"{total} elements were clamped to the range over the whole run")
        for module in modules:
            parametrize.remove_parametrizations(module, "weight")


def weight_size(module: nn.Module) -> int:
    """Return the number of elements of a layer's weight."""
    return int(module.weight.numel())  # type: ignore[operator]


class ElementwiseReparametrization(Reparametrization):
    """Base with the rule for adaptive optimizers; maps are built with `raw=is_adaptive(ctx)`."""

    @torch.no_grad()
    def before_step(self, ctx: Context) -> None:
        super().before_step(ctx)
        trained = list(raw_maps(ctx))
        ctx.memory["before"] = [v.clone() for _, v in trained]
        ctx.memory["slopes"] = [mapping.slope(v) for mapping, v in trained]

    @torch.no_grad()
    def after_step(self, ctx: Context) -> None:
        """Rescale an adaptive step: v <- v_before + Psi'(v_before) (v - v_before)."""
        before, slopes = ctx.memory.pop("before"), ctx.memory.pop("slopes")
        if before:
            now = [v for _, v in raw_maps(ctx)]
            torch._foreach_sub_(now, before)
            torch._foreach_mul_(now, slopes)
            torch._foreach_add_(now, before)


def raw_maps(ctx: Context) -> Iterator[tuple[Elementwise, Tensor]]:
    """Yield the maps whose trained weight receives the gradient of the effective one."""
    for _, mapping, originals in iterate_maps(ctx):
        if isinstance(mapping, Elementwise) and mapping.raw:
            yield mapping, originals[0].detach()


def is_adaptive(ctx: Context) -> bool:
    """Return whether the optimizer's steps do not depend on the size of the gradient."""
    return ctx.recipe.optimizer == "adam"
