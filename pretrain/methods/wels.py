"""WELS: at every round start, redraw the same random part of all weights.

Knowledge Evolution in Neural Networks. A. Taha, A. Shrivastava, L. Davis, CVPR 2021
(weight-level splitting).
Paper: https://arxiv.org/abs/2103.05152
Code:  https://github.com/ahmdtaha/knowledge_evolution
Also in the reinitialization study, https://arxiv.org/abs/2109.00267, section 1.

    before training:    s ~ Bernoulli(fraction) per element, fixed for the whole run
    round start r > 0:  w <- (1 - s) w + s eta,  eta a fresh draw

The whole network trains in between; the mask is not used in the forward pass.

| setting  | study      | KE code                  | LLF's comparator | here                     |
|----------|------------|--------------------------|------------------|--------------------------|
| fraction | 0.2        | 0.5                      | 0.2              | 0.2: 1 - split_rate      |
| weights  | not stated | kernels, head's included | same             | kernels, head's included |

Untouched: biases, norm layers and their statistics.

Differences: none known; the papers report no accuracy on TinyImageNet.
"""

from typing import ClassVar

from pydantic import Field

from pretrain.bases import masks
from pretrain.method import RoundMethod
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context


class Wels(RoundMethod):
    """Settings of WELS. fraction: part of the elements to redraw, the same ones in every round."""

    fraction: float = Field(0.2, ge=0, le=1)

    SOURCE: ClassVar = (
        "WELS (Taha et al. 2021), code ahmdtaha/knowledge_evolution; "
        "reinitialization study, section 1"
    )
    NEUTRAL: ClassVar[Neutral] = {"fraction": 0.0}

    def setup(self, ctx: Context) -> None:
        for name, weight in masks.effective_kernels(ctx).items():
            mask = masks.bernoulli_mask(weight.shape, self.fraction, ctx.generator("mask", name))
            ctx.memory[name] = mask.to(ctx.device)

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round > 0:
            note = f"the fixed random {self.fraction:g} of every kernel"
            masks.refill_masked(ctx, ctx.memory, note)
