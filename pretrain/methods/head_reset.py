"""Head reset: when new data arrive, the fully-connected layers get their initial values back.

Nikishin et al. 2022, "The Primacy Bias in Deep Reinforcement Learning"; as the comparator of "Soft
Weight Rescaling", appendix D.2 (methods.md B5) and its official code.

    new data:  weight and bias of the layers in `scope` <- their stored initial values

| setting    | paper                                      | code                | here  |
|------------|--------------------------------------------|---------------------|-------|
| scope      | fully-connected layers; MLP: the last only | same (VGG-16: stub) | paper |
| fresh_draw | no                                         | no: the same values | false |

The convolutional part keeps every bit; the optimizer's state carries over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fsbench.backbones.architectures._roles import below
from pretrain import anchors, scaling, swr_study
from pretrain.method import Method, Neutral, Rank
from pretrain.scenarios import fields

if TYPE_CHECKING:
    from fsbench.backbones.architectures import RoleMap
    from pretrain.context import Context
    from pretrain.recipe import Recipe

Scope = Literal["paper", "fully_connected", "head"]


def layers(roles: RoleMap, scope: Scope) -> tuple[str, ...]:
    """Names of the layers that are reset; `paper`: the fully-connected ones outside all blocks."""
    blocks = [module for block in roles.blocks for module in block]
    if scope == "head":
        return (roles.head,)
    if scope == "paper":
        return tuple(name for name in roles.fully_connected if not below(name, blocks))
    return roles.fully_connected


class HeadReset(Method):
    """scope: which layers; fresh_draw: new initial values each time instead of the stored ones."""

    scope: Scope = "paper"
    fresh_draw: bool = False

    SOURCE: ClassVar = (
        "Nikishin et al. 2022; Soft Weight Rescaling, appendix D.2; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar[Neutral] = "it always resets the head"
    PILOT: ClassVar = {**fields("warm-start"), "plan.epoch_images": 13_500}
    TOY: ClassVar = fields("warm-start")
    PAPER: ClassVar = swr_study.scenarios("head_reset", "head_reset")

    def check(self, recipe: Recipe) -> None:
        anchors.need_stages(self, recipe)

    def setup(self, ctx: Context) -> None:
        chosen = layers(ctx.roles, self.scope)
        names = [f"{layer}.{part}" for layer in chosen for part in ("weight", "bias")]
        anchors.store(ctx, (name for name in names if scaling.has(ctx.model, name)))

    def stage_start(self, ctx: Context) -> None:
        if ctx.clock.stage == 0:
            return
        note = f"new data, {self.scope}"
        if self.fresh_draw:
            ctx.redraw(anchors.stored(ctx), note)
        else:
            ctx.rewrite(anchors.stored(ctx), note)
