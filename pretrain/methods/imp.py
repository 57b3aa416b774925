"""IMP: at every round start, prune some weights for good and rewind the others.

The Lottery Ticket Hypothesis: Finding Sparse, Trainable Neural Networks. J. Frankle, M. Carbin,
ICLR 2019 (iterative magnitude pruning).
Paper: https://arxiv.org/abs/1803.03635
Code:  https://github.com/hlml/fortuitous_forgetting, targeted_forgetting (the version of the LLF
authors, "FF")

    round start r > 0:  m <- m without the floor(fraction n) smallest |w| of the n remaining ones
                        w <- m theta_0, everything else <- theta_0
    every step:         gradient <- m gradient before it, w <- m w after it

| setting       | paper             | FF                         | here                        |
|---------------|-------------------|----------------------------|-----------------------------|
| fraction      | 0.2               | 0.2                        | 0.2                         |
| head_fraction | half              | half                       | null: half of `fraction`    |
| scope         | layer             | layer                      | layer; `global`: all but it |
| rewind_epoch  | 0; later papers k | init, epoch, or not at all | 0; null keeps the weights   |

theta_0 are the weights before epoch `rewind_epoch` of the first round: kernels, biases, norm layers
and their statistics. The head is pruned separately. Pruned weights are zero in the exported
network; momentum and decay cannot revive them.

Differences: none known. SEAL cites the method without an accuracy on TinyImageNet. Rewinding to a
later epoch is that of Frankle et al. 2019, https://arxiv.org/abs/1903.01611.
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from fsbench.core.errors import UsageError
from pretrain.bases import masks
from pretrain.method import Method, require_rounds
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe
from pretrain.training.context import Context
from pretrain.weights import surgery

KEEP, ORIGIN = "keep:", "origin:"
"""Prefixes of names in memory: masks of the remaining weights, and weights to rewind to."""


def prune(
    weights: dict[str, Tensor], keep: dict[str, Tensor], fraction: float, scope: masks.Scope
) -> dict[str, Tensor]:
    """Return the masks without the smallest part of their weights, per tensor or over all."""
    remaining = {name: weight[keep[name]] for name, weight in weights.items()}
    pruned = masks.smallest_masks(remaining, fraction, scope)
    return {name: mask.masked_scatter(mask, ~pruned[name]) for name, mask in keep.items()}


class Imp(Method):
    """Settings of IMP; fraction: part of the remaining weights to prune per round."""

    fraction: float = Field(0.2, ge=0, lt=1)
    head_fraction: float | None = Field(None, ge=0, lt=1)
    scope: masks.Scope = "layer"
    rewind_epoch: int | None = Field(0, ge=0)

    SOURCE: ClassVar = "Frankle & Carbin 2019; code hlml/fortuitous_forgetting"
    RANK: ClassVar = ActingOrder.ROUND
    NEUTRAL: ClassVar[Neutral] = {"fraction": 0.0, "rewind_epoch": None}

    def check(self, recipe: Recipe) -> None:
        require_rounds(self, recipe)
        if self.rewind_epoch is not None and self.rewind_epoch >= recipe.plan.epochs:
            raise UsageError(
                f"imp.rewind_epoch={self.rewind_epoch} is never reached: a round has"
                f" plan.epochs={recipe.plan.epochs}",
                fix=f"use at most {recipe.plan.epochs - 1}",
            )

    def phase(self, recipe: Recipe) -> int:
        return self.rewind_epoch or 0

    def setup(self, ctx: Context) -> None:
        for name, weight in masks.effective_kernels(ctx).items():
            ctx.memory[KEEP + name] = torch.ones_like(weight, dtype=torch.bool)

    def epoch_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0 and ctx.clock.epoch == self.rewind_epoch:
            for name in ctx.plain_names():
                ctx.memory[ORIGIN + name] = surgery.get_weight(ctx.model, name).detach().clone()

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0:
            return
        keep = self._prune(ctx)
        ctx.memory.update({KEEP + name: mask for name, mask in keep.items()})
        new = self._origin(ctx)
        new |= {name: new[name] * mask for name, mask in keep.items()}
        changed = {n: t for n, t in new.items() if not surgery.get_weight(ctx.model, n).equal(t)}
        remaining = sum(int(mask.sum()) for mask in keep.values())
        share = remaining / sum(mask.numel() for mask in keep.values())
        if changed:
            ctx.rewrite(changed, f"{share:.4f} of all kernel weights remain")

    def _origin(self, ctx: Context) -> dict[str, Tensor]:
        """Return the weights to rewind to; without rewinding, the current kernels."""
        if self.rewind_epoch is None:
            return masks.effective_kernels(ctx)
        return {name: ctx.memory[ORIGIN + name] for name in ctx.plain_names()}

    def _keep(self, ctx: Context) -> dict[str, Tensor]:
        """Return the mask of the remaining weights of every kernel."""
        return {f"{n}.weight": ctx.memory[f"{KEEP}{n}.weight"] for n in ctx.roles.layers}

    def _prune(self, ctx: Context) -> dict[str, Tensor]:
        """Return the masks of this round, in the order of the layers."""
        weights, keep = masks.effective_kernels(ctx), self._keep(ctx)
        head = f"{ctx.roles.head}.weight"
        fraction = self.fraction / 2 if self.head_fraction is None else self.head_fraction
        body = {name: weight for name, weight in weights.items() if name != head}
        return {
            **prune(body, {name: keep[name] for name in body}, self.fraction, self.scope),
            **prune({head: weights[head]}, {head: keep[head]}, fraction, "layer"),
        }

    def after_backward(self, ctx: Context) -> None:
        masks.mask_gradients(ctx, self._keep(ctx))

    def after_step(self, ctx: Context) -> None:
        masks.hold_at_zero(ctx, self._keep(ctx))
