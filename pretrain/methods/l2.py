"""L2 regularization: a penalty on all parameters, through the optimizer's gradient.

"Soft Weight Rescaling", appendix D.2 (methods.md B2); official code
CILAB-RL-TEAM/soft-weight-rescaling.

    loss + (lam / 2) |theta|^2        gradient + lam theta

| setting | paper                       | code                  | here                           |
|---------|-----------------------------|-----------------------|--------------------------------|
| lam     | 1e-1 .. 1e-5, TinyImageNet  |                       | 1e-5; 1e-4 under continual     |
|         | 1e-5                        |                       | learning                       |
| half    | yes                         | no: lam |theta|^2     | true; false for the code's     |
| on      | all parameters              | all parameters        | `all`; `kernels` as in Keras   |

Biases, norm scales and shifts are included, but for `on=kernels`: convolutions and linear layers,
what Keras' kernel_regularizer acts on (for Table 5 of the reinitialization study). Unlike decoupled
decay it passes through the moments of an adaptive optimizer; with SGD it is weight decay. The
penalty is not part of the logged loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from pretrain import anchors, masks, penalties, swr_study
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from pretrain.context import Context


class L2(Method):
    """lam: strength; half: the paper's factor 1/2, the official code has none; on: what shrinks."""

    lam: float = Field(1e-5, ge=0)
    half: bool = True
    on: Literal["all", "kernels"] = "all"

    SOURCE: ClassVar = (
        "Soft Weight Rescaling, appendix D.2; code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = Rank.STEP
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    PILOT: ClassVar = {"l2.lam": 1e-3}
    TOY: ClassVar = {"l2.lam": 1e-3}
    PAPER: ClassVar = swr_study.rows("l2", 0.3915, 0.4080)

    def setup(self, ctx: Context) -> None:
        kernels = self.on == "kernels"
        ctx.memory["names"] = list(masks.kernels(ctx) if kernels else anchors.parameter_names(ctx))

    def after_backward(self, ctx: Context) -> None:
        if self.lam:
            strength = self.lam if self.half else 2 * self.lam
            penalties.pull_to_zero(ctx, ctx.memory["names"], strength)
