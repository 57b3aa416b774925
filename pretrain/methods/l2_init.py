"""L2 Init: add a penalty on the distance of all parameters from their initial values.

Maintaining Plasticity in Continual Learning via Regenerative Regularization. S. Kumar,
H. Marklund, B. Van Roy, 2023.
Paper: https://arxiv.org/abs/2308.11958
Here as the comparator of soft weight rescaling (https://arxiv.org/abs/2507.04683, appendix D.2)
and its code, https://github.com/CILAB-RL-TEAM/soft-weight-rescaling.

    loss + (lam / 2) |theta - theta_0|^2        gradient + lam (theta - theta_0)

| setting              | SWR paper          | SWR code                    | here                   |
|----------------------|--------------------|-----------------------------|------------------------|
| lam                  | TinyImageNet: 1e-5 | -                           | 1e-5                   |
| half                 | yes                | no: lam |theta - theta_0|^2 | true                   |
| reanchor_on_new_data | no                 | flag --reinit               | false                  |

theta_0 is a stored copy of the initial parameters, biases and norm layers included.

Differences: without the factor 1/2, the official code needs half the lam for the same penalty; the
logged loss leaves the penalty out; theta_0 stays the same when another method redraws weights.
"""

from typing import ClassVar

from pydantic import Field

from pretrain.bases import penalties
from pretrain.method import Method, require_stages
from pretrain.recipes import swr_study
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe
from pretrain.training.context import Context


class L2Init(Method):
    """Settings of L2 Init; reanchor_on_new_data: theta_0 <- theta when new data arrive."""

    lam: float = Field(1e-5, ge=0)
    half: bool = True
    reanchor_on_new_data: bool = False

    SOURCE: ClassVar = (
        "Kumar et al. 2023; Soft Weight Rescaling, appendix D.2; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = ActingOrder.STEP
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    PILOT: ClassVar = {"l2_init.lam": 1e-3}
    REGIME: ClassVar = PILOT
    TOY: ClassVar = {"l2_init.lam": 1e-3}
    PAPER: ClassVar = swr_study.paper_rows("l2_init")

    def check(self, recipe: Recipe) -> None:
        if self.reanchor_on_new_data:
            require_stages(self, recipe)

    def setup(self, ctx: Context) -> None:
        penalties.store_anchors(ctx, ctx.plain_names(trained=True))

    def stage_start(self, ctx: Context) -> None:
        if self.reanchor_on_new_data and ctx.clock.stage > 0:
            penalties.store_anchors(ctx, penalties.stored_anchors(ctx))

    def after_backward(self, ctx: Context) -> None:
        if self.lam:
            strength = self.lam if self.half else 2 * self.lam
            penalties.pull(ctx, penalties.stored_anchors(ctx), strength)
