"""WELSR: at every round start a new random part of all weights goes back to random.

Weight-level splitting with a new split every round: Taha et al. 2021, "Knowledge Evolution in
Neural Networks", code ahmdtaha/knowledge_evolution with --reset_hypothesis; "The Impact of
Reinitialization", eq. 1 and section 1 (methods.md A2).

    round start r > 0:  s ~ Bernoulli(fraction) per element,  w <- (1 - s) w + s eta,  eta fresh

| setting  | paper          | code                       | here                       |
|----------|----------------|----------------------------|----------------------------|
| fraction | about 20 %     | split_rate 0.8 is kept     | 0.2                        |
| exact    | "a fixed size" | Bernoulli                  | false: Bernoulli           |
| weights  | not said       | kernels, head's included   | kernels, head's included   |

Untouched: biases, norm layers and their statistics. No figure on TinyImageNet was published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pretrain import masks
from pretrain.events import need_rounds
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from pretrain.context import Context
    from pretrain.recipe import Recipe


class Welsr(Method):
    """fraction: part that is re-drawn; exact: exactly that part of every kernel."""

    fraction: float = Field(0.2, ge=0, le=1)
    exact: bool = False

    SOURCE: ClassVar = (
        "WELSR (Taha et al. 2021), code ahmdtaha/knowledge_evolution; "
        "reinitialization study, section 1"
    )
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar[Neutral] = {"fraction": 0.0}

    def check(self, recipe: Recipe) -> None:
        need_rounds(self, recipe)

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0:
            return
        draw = masks.exactly if self.exact else masks.bernoulli
        taken = {
            name: draw(weight.shape, self.fraction, ctx.generator("mask", name))
            for name, weight in masks.kernels(ctx).items()
        }
        masks.refill(ctx, taken, f"a random {self.fraction:g} of every kernel")
