"""Full reset: when new data arrive, restart training from the initial parameters.

Recovering Plasticity of Neural Networks via Soft Weight Rescaling. S. Oh, S. Park, I. Han,
K.-J. Kim, 2025.
Paper: https://arxiv.org/abs/2507.04683, section 4 ("without warm-start")
Code:  https://github.com/CILAB-RL-TEAM/soft-weight-rescaling

    new data:  theta <- theta_0

| setting       | paper      | official code | here                                        |
|---------------|------------|---------------|---------------------------------------------|
| running_stats | not stated | left alone    | false: left alone; true: reset as well      |
| opt_reset     | not stated | state is kept | recipe field; `none` in the paper's recipes |

theta_0 are the stored initial parameters, norm scales and shifts included, so every stage starts
from the same point as the first. This is the cold start that a warm start is compared with.

Differences: none by default.
"""

from typing import ClassVar

from pretrain.bases import penalties
from pretrain.method import StageMethod
from pretrain.recipes import swr_study
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context


class FullReset(StageMethod):
    """Settings of the full reset; running_stats: also reset those of batch norm."""

    running_stats: bool = False

    SOURCE: ClassVar = (
        "Soft Weight Rescaling, section 4, without warm-start; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    NEUTRAL: ClassVar[Neutral] = "it always resets the network"
    PAPER: ClassVar = swr_study.scenario_rows("full_reset", "full_reset")

    def setup(self, ctx: Context) -> None:
        penalties.store_anchors(ctx, ctx.plain_names(trained=not self.running_stats))

    def stage_start(self, ctx: Context) -> None:
        if ctx.clock.stage > 0:
            ctx.rewrite(penalties.stored_anchors(ctx), "new data: all parameters")
