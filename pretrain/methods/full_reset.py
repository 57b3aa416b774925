"""Full reset: when new data arrive, training starts over from the initial parameters.

"Soft Weight Rescaling", section 4, "without warm-start", and its official code (methods.md B1): the
cold start that warm-started networks are held against.

    new data:  theta <- theta_0

| setting       | paper | code                     | here                                    |
|---------------|-------|--------------------------|-----------------------------------------|
| running_stats | -     | left alone               | false; true starts them over too        |
| Adam's state  | -     | kept                     | recipe field opt_reset, `none` in rows  |

theta_0 are the stored initial parameters, norm scales and shifts included, so every stage starts
where the first one did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pretrain import anchors, surgery, swr_study
from pretrain.method import Method, Neutral, Rank
from pretrain.scenarios import fields

if TYPE_CHECKING:
    from pretrain.context import Context
    from pretrain.recipe import Recipe


class FullReset(Method):
    """running_stats: batch norm's statistics start over too."""

    running_stats: bool = False

    SOURCE: ClassVar = (
        "Soft Weight Rescaling, section 4, without warm-start; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar[Neutral] = "it always resets the network"
    PILOT: ClassVar = {**fields("warm-start"), "plan.epoch_images": 13_500}
    TOY: ClassVar = fields("warm-start")
    PAPER: ClassVar = swr_study.scenarios("full_reset", "full_reset")

    def check(self, recipe: Recipe) -> None:
        anchors.need_stages(self, recipe)

    def setup(self, ctx: Context) -> None:
        names = anchors.parameter_names(ctx)
        if self.running_stats:
            names = surgery.plain_names(ctx.architecture, ctx.classes, ctx.recipe.width)
        anchors.store(ctx, names)

    def stage_start(self, ctx: Context) -> None:
        if ctx.clock.stage > 0:
            ctx.rewrite(anchors.stored(ctx), "new data: all parameters")
