"""What the reparametrizing methods share: registering maps, decay on w, the adaptive rule, fusing.

Every convolution and linear weight w of the network becomes w = Psi(v), head included, biases and
norm layers not (weight compander, III-A). The forward pass at step 0 is that of the plain network,
because v starts at the inverse of the usual initial w.

Weight decay on w (`decay="w"`) is a gradient: wd Psi(v) Psi'(v) is added to that of v before the
step, and the optimizer's own decay of v is off. `decay="v"` leaves it on. Neither touches the
scalars a, b of a map.

An adaptive optimizer undoes a rescaling of the gradient, so the step is computed from the gradient
of w and then multiplied by Psi'(v) (powerpropagation, section 3; weight compander, III-A3): maps
are `raw`, `before_step` keeps v and Psi'(v), `after_step` rescales what the optimizer did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from pretrain.method import Method
from pretrain.recipes.recipe import ActingOrder
from pretrain.training.optimizer import ParameterGroup
from pretrain.weights.parametrizations import (
    Elementwise,
    Originals,
    WeightMap,
    count_clamped,
    find_map,
)

if TYPE_CHECKING:
    from pretrain.training.context import Context


def layer_modules(ctx: Context) -> Iterator[nn.Module]:
    """The convolutions and linear layers, in forward order."""
    return (ctx.model.get_submodule(name) for name in ctx.roles.layers)


def iterate_maps(ctx: Context) -> Iterator[tuple[nn.Module, WeightMap, Originals]]:
    """The reparametrized layers: module, map, trained tensors."""
    for module in layer_modules(ctx):
        found = find_map(module)
        if found is not None:
            yield module, *found


class Reparametrization(Method):
    """Base of the methods; a subclass says which map a layer gets."""

    RANK: ClassVar = ActingOrder.REPARAMETRIZATION

    def maps(self, ctx: Context) -> Iterator[WeightMap]:
        """A new map for every layer, in their order."""
        raise NotImplementedError

    @property
    def decays(self) -> Literal["w", "v"]:
        """Whether weight decay acts on the effective or on the trained weights."""
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
        """Trained weights decay as `decays` says, scalars of the maps not at all."""
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
        """Add weight decay on w to the gradients; its sign and size are those of the groups."""
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
        """Psi(v) becomes the plain weight, at the bit; the total of clamped elements is logged."""
        modules = list(layer_modules(ctx))
        total = sum(count_clamped(module) for module in modules)
        if total:
            ctx.log((), 0.0, f"{total} elements were clamped to the range over the whole run")
        for module in modules:
            parametrize.remove_parametrizations(module, "weight")


def weight_size(module: nn.Module) -> int:
    """Elements of a layer's weight."""
    return int(module.weight.numel())  # type: ignore[operator]


class ElementwiseReparametrization(Reparametrization):
    """Adds the adaptive rule; a subclass builds its maps with `raw=adaptive(ctx)`."""

    @torch.no_grad()
    def before_step(self, ctx: Context) -> None:
        super().before_step(ctx)
        trained = list(raw_maps(ctx))
        ctx.memory["before"] = [v.clone() for _, v in trained]
        ctx.memory["slopes"] = [mapping.slope(v) for mapping, v in trained]

    @torch.no_grad()
    def after_step(self, ctx: Context) -> None:
        """Adaptive optimizers: v <- v_before + Psi'(v_before) (v - v_before)."""
        before, slopes = ctx.memory.pop("before"), ctx.memory.pop("slopes")
        if before:
            now = [v for _, v in raw_maps(ctx)]
            torch._foreach_sub_(now, before)
            torch._foreach_mul_(now, slopes)
            torch._foreach_add_(now, before)


def raw_maps(ctx: Context) -> Iterator[tuple[Elementwise, Tensor]]:
    """The maps whose trained weight receives the gradient of the effective one."""
    for _, mapping, originals in iterate_maps(ctx):
        if isinstance(mapping, Elementwise) and mapping.raw:
            yield mapping, originals[0].detach()


def is_adaptive(ctx: Context) -> bool:
    """Whether the optimizer's steps do not depend on the size of the gradient."""
    return ctx.recipe.optimizer == "adam"
