"""WELSR: at every round start, redraw a new random part of all weights.

Knowledge Evolution in Neural Networks. A. Taha, A. Shrivastava, L. Davis, CVPR 2021
(weight-level splitting with a new split in every round).
Paper: https://arxiv.org/abs/2103.05152
Code:  https://github.com/ahmdtaha/knowledge_evolution, flag --reset_hypothesis
Also in the reinitialization study, https://arxiv.org/abs/2109.00267, eq. 1 and section 1.

    round start r > 0:  s ~ Bernoulli(fraction) per element,  w <- (1 - s) w + s eta,  eta fresh

| setting  | study          | KE code                    | here                       |
|----------|----------------|----------------------------|----------------------------|
| fraction | about 20 %     | 1 - split_rate             | 0.2                        |
| exact    | "a fixed size" | Bernoulli                  | false: Bernoulli           |
| weights  | not stated     | kernels, head's included   | kernels, head's included   |

Untouched: biases, norm layers and their statistics.

Differences: none known; the papers report no accuracy on TinyImageNet.
"""

from typing import ClassVar

from pydantic import Field

from pretrain.bases import masks
from pretrain.method import RoundMethod
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context


class Welsr(RoundMethod):
    """Settings of WELSR; exact: exactly this fraction of every kernel."""

    fraction: float = Field(0.2, ge=0, le=1)
    exact: bool = False

    SOURCE: ClassVar = (
        "WELSR (Taha et al. 2021), code ahmdtaha/knowledge_evolution; "
        "reinitialization study, section 1"
    )
    NEUTRAL: ClassVar[Neutral] = {"fraction": 0.0}

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0:
            return
        draw = masks.uniform_mask if self.exact else masks.bernoulli_mask
        selected = {
            name: draw(weight.shape, self.fraction, ctx.generator("mask", name))
            for name, weight in masks.effective_kernels(ctx).items()
        }
        masks.refill_masked(ctx, selected, f"a random {self.fraction:g} of every kernel")
