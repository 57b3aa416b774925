"""L2 Init: a penalty on the distance of all parameters to where they started.

Kumar et al. 2023, "Maintaining Plasticity via Regenerative Regularization"; as the comparator of
"Soft Weight Rescaling", appendix D.2 (methods.md B3) and its official code.

    loss + (lam / 2) |theta - theta_0|^2        gradient + lam (theta - theta_0)

| setting              | paper              | code                        | here                   |
|----------------------|--------------------|-----------------------------|------------------------|
| lam                  | TinyImageNet 1e-5  |                             | 1e-5                   |
| half                 | yes                | no: lam |theta - theta_0|^2 | true                   |
| reanchor_on_new_data | no                 | flag --reinit               | false                  |

theta_0 is a stored copy of the initial parameters, biases and norm layers included; it stays when
another method re-draws weights. The penalty is not part of the logged loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pretrain import anchors, penalties, swr_study
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from pretrain.context import Context
    from pretrain.recipe import Recipe


class L2Init(Method):
    """lam: strength; half: the paper's factor 1/2, the official code has none;
    reanchor_on_new_data: theta_0 becomes what it is when new data arrive.
    """

    lam: float = Field(1e-5, ge=0)
    half: bool = True
    reanchor_on_new_data: bool = False

    SOURCE: ClassVar = (
        "Kumar et al. 2023; Soft Weight Rescaling, appendix D.2; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = Rank.STEP
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    PILOT: ClassVar = {"l2_init.lam": 1e-3}
    TOY: ClassVar = {"l2_init.lam": 1e-3}
    PAPER: ClassVar = swr_study.rows("l2_init", 0.3870, 0.4199)

    def check(self, recipe: Recipe) -> None:
        if self.reanchor_on_new_data:
            anchors.need_stages(self, recipe)

    def setup(self, ctx: Context) -> None:
        anchors.store(ctx, anchors.parameter_names(ctx))

    def stage_start(self, ctx: Context) -> None:
        if self.reanchor_on_new_data and ctx.clock.stage > 0:
            anchors.store(ctx, anchors.stored(ctx))

    def after_backward(self, ctx: Context) -> None:
        if self.lam:
            strength = self.lam if self.half else 2 * self.lam
            penalties.pull(ctx, anchors.stored(ctx), strength)
