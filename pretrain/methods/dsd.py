"""DSD: at every round start, redraw the weights of smallest magnitude.

DSD: Dense-Sparse-Dense Training for Deep Neural Networks. S. Han et al., ICLR 2017.
Paper: https://arxiv.org/abs/1607.04381
Here in the form of the reinitialization study (https://arxiv.org/abs/2109.00267, section 1), which
extends it to many rounds and a random fill; no public code.

    round start r > 0:    s = 1 on the floor(fraction n) elements of smallest |w|
                          w <- (1 - s) w + s eta,  eta a fresh draw
    with a sparse phase:  w <- (1 - s) w, fixed at zero for `sparse_epochs` epochs, then the fill

| setting       | study      | Han et al. 2017         | here                                     |
|---------------|------------|-------------------------|------------------------------------------|
| fraction      | 0.2        | per layer, 0.25 to 0.5  | 0.2                                      |
| scope         | not stated | per layer               | layer; `global` uses one threshold       |
| fill          | random     | zero                    | init                                     |
| sparse_epochs | none       | training under the mask | 0                                        |
| events        | all        | one                     | null: every round start except the first |

`fill=zero`, `sparse_epochs` > 0 and `events=1` give the method of Han et al. Of equal magnitudes
the earlier element is taken, so the count is exact. Weights are kernels, the head's included;
biases and norm layers are untouched.

Differences: none known; neither paper reports an accuracy on TinyImageNet.
"""

from typing import ClassVar

from pydantic import Field

from fsbench.core.errors import UsageError
from pretrain.bases import masks
from pretrain.method import RoundMethod
from pretrain.recipes.recipe import Neutral, Recipe
from pretrain.training.context import Context


class Dsd(RoundMethod):
    """Settings of DSD; events: the number of rounds that redraw, null: all."""

    fraction: float = Field(0.2, ge=0, le=1)
    scope: masks.Scope = "layer"
    fill: masks.Fill = "init"
    sparse_epochs: int = Field(0, ge=0)
    events: int | None = Field(None, ge=1)

    SOURCE: ClassVar = "reinitialization study, section 1; Han et al. 2017"
    NEUTRAL: ClassVar[Neutral] = {"fraction": 0.0}

    def check(self, recipe: Recipe) -> None:
        super().check(recipe)
        if self.sparse_epochs >= recipe.plan.epochs:
            raise UsageError(
                f"dsd.sparse_epochs={self.sparse_epochs} leaves no dense epoch in a round of"
                f" plan.epochs={recipe.plan.epochs}",
                fix=f"use at most {recipe.plan.epochs - 1}, or more epochs per round",
            )

    def phase(self, recipe: Recipe) -> int:
        return self.sparse_epochs

    def round_start(self, ctx: Context) -> None:
        active = 0 < ctx.clock.round <= (self.events or ctx.clock.round)
        if not active or self.fraction == 0:
            return
        small = masks.smallest_masks(masks.effective_kernels(ctx), self.fraction, self.scope)
        note = f"the smallest {self.fraction:g} by magnitude, {self.scope} scope"
        if self.sparse_epochs:
            masks.refill_masked(ctx, small, f"{note}: sparse phase", "zero")
            ctx.memory.update({name: ~mask for name, mask in small.items()})
        else:
            masks.refill_masked(ctx, small, note, self.fill)

    def epoch_start(self, ctx: Context) -> None:
        if ctx.memory and ctx.clock.epoch == self.sparse_epochs:
            pruned = {name: ~ctx.memory[name] for name in masks.effective_kernels(ctx)}
            ctx.memory.clear()
            if self.fill == "init":
                masks.refill_masked(ctx, pruned, "end of the sparse phase")

    def after_backward(self, ctx: Context) -> None:
        if ctx.memory:
            masks.mask_gradients(ctx, ctx.memory)

    def after_step(self, ctx: Context) -> None:
        if ctx.memory:
            masks.hold_at_zero(ctx, ctx.memory)
