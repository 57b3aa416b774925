"""L2 regularization: add a penalty on all parameters to the gradient that the optimizer sees.

Recovering Plasticity of Neural Networks via Soft Weight Rescaling. S. Oh, S. Park, I. Han,
K.-J. Kim, 2025.
Paper: https://arxiv.org/abs/2507.04683, appendix D.2
Code:  https://github.com/CILAB-RL-TEAM/soft-weight-rescaling

    loss + (lam / 2) |theta|^2        gradient + lam theta

| setting | paper                         | official code     | here                             |
|---------|-------------------------------|-------------------|----------------------------------|
| lam     | 1e-1 .. 1e-5, TinyImageNet:   | -                 | 1e-5; 1e-4 in continual learning |
|         | 1e-5                          |                   |                                  |
| half    | yes                           | no: lam |theta|^2 | true; false as in the code       |
| on      | all parameters                | all parameters    | `all`; `kernels` as in Keras     |

Biases, norm scales and shifts are included unless `on=kernels`: then only the weights of
convolutions and linear layers, as Keras' kernel_regularizer does (Table 5 of the reinitialization
study). Unlike decoupled decay, the penalty passes through the moments of an adaptive optimizer;
with SGD it equals weight decay.

Differences: without the factor 1/2, the official code needs half the lam for the same penalty; the
logged loss leaves the penalty out.
"""

from typing import ClassVar, Literal

from pydantic import Field

from pretrain.bases import masks, penalties
from pretrain.method import Method
from pretrain.recipes import swr_study
from pretrain.recipes.recipe import ActingOrder, Neutral
from pretrain.training.context import Context


class L2(Method):
    """Settings of L2 regularization; half: with the paper's factor 1/2."""

    lam: float = Field(1e-5, ge=0)
    half: bool = True
    on: Literal["all", "kernels"] = "all"

    SOURCE: ClassVar = (
        "Soft Weight Rescaling, appendix D.2; code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = ActingOrder.STEP
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    PILOT: ClassVar = {"l2.lam": 1e-3}
    REGIME: ClassVar = PILOT
    TOY: ClassVar = {"l2.lam": 1e-3}
    PAPER: ClassVar = swr_study.paper_rows("l2")

    def setup(self, ctx: Context) -> None:
        kernels = self.on == "kernels"
        ctx.memory["names"] = list(
            masks.effective_kernels(ctx) if kernels else ctx.plain_names(trained=True)
        )

    def after_backward(self, ctx: Context) -> None:
        if self.lam:
            strength = self.lam if self.half else 2 * self.lam
            penalties.pull(ctx, dict.fromkeys(ctx.memory["names"]), strength)
