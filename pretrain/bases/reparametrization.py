"""Base classes of the reparametrizing methods: maps, decay on w, the adaptive rule, fusing.

Every convolution and linear weight w of the network, including the head, becomes w = Psi(v); biases
and norm layers stay plain (weight compander, III-A). The forward pass at step 0 is that of the
plain network, because v starts at the inverse of the usual initial w.

Weight decay on w (`decay="w"`) is a gradient: wd Psi(v) Psi'(v) is added to that of v before the
step, and the optimizer's own decay of v is off. `decay="v"` leaves it on. Neither touches the
scalars a, b of a map.

An adaptive optimizer undoes a rescaling of the gradient, so the step is computed from the gradient
of w and then multiplied by Psi'(v) (powerpropagation, section 3; weight compander, III-A3): maps
are `raw`, `before_step` keeps v and Psi'(v), `after_step` rescales what the optimizer did.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from fsbench.core.errors import UsageError
from pretrain.method import Method
from pretrain.recipes.recipe import ActingOrder, Recipe
from pretrain.training.context import Context, ParameterGroup
from pretrain.weights.parametrizations import (
    Elementwise,
    Originals,
    WeightMap,
    apply_jointly,
    find_map,
)
from pretrain.weights.surgery import get_weight, total_clamped


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

    decay: Literal["w", "v"] = "w"

    RANK: ClassVar = ActingOrder.REPARAMETRIZATION
    GRAPHS: ClassVar = False  # weights are new tensors in every step

    def maps(self, ctx: Context) -> Iterator[WeightMap]:
        """Yield a new map for every layer, in their order."""
        raise NotImplementedError

    @property
    def decays(self) -> Literal["w", "v"]:
        """Return whether weight decay acts on the effective (w) or on the trained weights (v)."""
        return self.decay

    def check(self, recipe: Recipe) -> None:
        if recipe.optimizer == "adamw" and recipe.weight_decay and self.decays == "w":
            raise UsageError(
                f"{self.name} decays w by a gradient, and adamw keeps decay out of the gradient",
                fix=f"use --set {self.name}.decay=v, or --set optimizer=adam",
            )

    def setup(self, ctx: Context) -> None:
        """Register the maps, and log when an initial weight had to be moved into a map's range."""
        for module, mapping in zip(layer_modules(ctx), self.maps(ctx), strict=True):
            parametrize.register_parametrization(module, "weight", mapping)
        if computes_jointly(ctx):
            layers = list(iterate_maps(ctx))
            ctx.model.register_forward_pre_hook(lambda *_: cache_weights(layers))
        weights = [f"{layer}.weight" for layer in ctx.roles.layers]
        names = tuple(name for name in weights if total_clamped(ctx.model, [name]))
        if names and not ctx.resumed:
            total = sum(get_weight(ctx.model, name).numel() for name in weights)
            moved = total_clamped(ctx.model, names)
            note = f"{moved} of {total} initial elements clamped to the range"
            ctx.log(names, moved / total, note)

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
        for trained, direction in decay_directions(ctx) if rates else ():
            if id(trained) in rates and trained.grad is not None:
                gradients, directions = terms.setdefault(rates[id(trained)], ([], []))
                gradients.append(trained.grad)
                directions.append(direction)
        for rate, (gradients, directions) in terms.items():
            torch._foreach_add_(gradients, directions, alpha=rate)

    def finalize(self, ctx: Context) -> None:
        """Replace every map by the plain weight Psi(v), to the bit; log the clamped elements."""
        total = total_clamped(ctx.model, (f"{layer}.weight" for layer in ctx.roles.layers))
        if total:
            ctx.log((), 0.0, f"{total} elements were clamped to the range over the whole run")
        for module in layer_modules(ctx):
            parametrize.remove_parametrizations(module, "weight")


def computes_jointly(ctx: Context) -> bool:
    """Return whether one call computes all weights: on a GPU, of equal element-wise maps."""
    if ctx.device.type == "cpu" or ctx.recipe.compile:
        return False
    maps = [mapping for _, mapping, _ in iterate_maps(ctx)]
    # maps with scalars of their own are not equal, and a compiled network has fused kernels
    scalars = {tuple(map(id, mapping.parameters())) for mapping in maps}
    return len(scalars) == 1 and isinstance(maps[0], Elementwise)


def cache_weights(layers: Sequence[tuple[nn.Module, WeightMap, Originals]]) -> None:
    """Compute all weights by one call, into torch's cache of a step's parametrized weights."""
    if parametrize._cache_enabled and not parametrize._cache:
        weights = apply_jointly(layers[0][1], [v for _, _, (v,) in layers])
        for (module, _, _), weight in zip(layers, weights, strict=True):
            parametrize._cache[id(module), "weight"] = weight


def decay_directions(ctx: Context) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield trained tensors with the gradient of weight decay on w by them."""
    layers = list(iterate_maps(ctx))
    weights = [cast("Tensor", module.weight) for module, _, _ in layers]
    if computes_jointly(ctx):
        trained, mapping = [v for _, _, (v,) in layers], layers[0][1]
        directions = apply_jointly(lambda v, w: next(mapping.decay(w, v))[1], trained, weights)
        yield from zip(trained, directions, strict=True)
    else:
        for weight, (_, mapping, originals) in zip(weights, layers, strict=True):
            yield from mapping.decay(weight, *originals)


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
    return ctx.recipe.optimizer != "sgd"
