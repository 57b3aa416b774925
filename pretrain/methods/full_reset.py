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

from __future__ import annotations

from typing import ClassVar

from pretrain.method import Method, require_stages
from pretrain.recipes import swr_study
from pretrain.recipes.plan import scenario_fields
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe
from pretrain.training.context import Context
from pretrain.weights import penalties, surgery


class FullReset(Method):
    """Settings of the full reset.

    running_stats: also reset the running statistics of batch norm.
    """

    running_stats: bool = False

    SOURCE: ClassVar = (
        "Soft Weight Rescaling, section 4, without warm-start; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = ActingOrder.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar[Neutral] = "it always resets the network"
    PILOT: ClassVar = {**scenario_fields("warm-start"), "plan.epoch_images": 13_500}
    TOY: ClassVar = scenario_fields("warm-start")
    PAPER: ClassVar = swr_study.scenario_rows("full_reset", "full_reset")

    def check(self, recipe: Recipe) -> None:
        require_stages(self, recipe)

    def setup(self, ctx: Context) -> None:
        names = penalties.parameter_names(ctx)
        if self.running_stats:
            names = surgery.plain_names(ctx.architecture, ctx.classes, ctx.recipe.width)
        penalties.store_anchors(ctx, names)

    def stage_start(self, ctx: Context) -> None:
        if ctx.clock.stage > 0:
            ctx.rewrite(penalties.stored_anchors(ctx), "new data: all parameters")
