"""Head reset: when new data arrive, restore the initial values of the fully-connected layers.

The Primacy Bias in Deep Reinforcement Learning. E. Nikishin, M. Schwarzer, P. D'Oro, P.-L. Bacon,
A. Courville, ICML 2022.
Paper: https://arxiv.org/abs/2205.07802
Here as the comparator of soft weight rescaling (https://arxiv.org/abs/2507.04683, appendix D.2)
and its code, https://github.com/CILAB-RL-TEAM/soft-weight-rescaling.

    new data:  weight and bias of the layers in `scope` <- their stored initial values

| setting    | SWR paper                                  | SWR code              | here    |
|------------|--------------------------------------------|-----------------------|---------|
| scope      | fully-connected layers; MLP: only the last | same; VGG-16: missing | `paper` |
| fresh_draw | no                                         | no, the same values   | false   |

Untouched: the convolutional part and the optimizer's state.

Differences: none by default. Nikishin et al. reset periodically and draw new values
(`fresh_draw=true`).
"""

from typing import ClassVar, Literal

from fsbench.backbones.architectures import RoleMap, below
from pretrain.bases import penalties
from pretrain.method import StageMethod
from pretrain.recipes import swr_study
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context
from pretrain.weights.surgery import has_tensor

ResetScope = Literal["paper", "fully_connected", "head"]


def select_layers(roles: RoleMap, scope: ResetScope) -> tuple[str, ...]:
    """Return the names of the layers to reset; `paper`: fully-connected ones outside all blocks."""
    blocks = [module for block in roles.blocks for module in block]
    if scope == "head":
        return (roles.head,)
    if scope == "paper":
        return tuple(name for name in roles.fully_connected if not below(name, blocks))
    return roles.fully_connected


class HeadReset(StageMethod):
    """Settings of the head reset; fresh_draw: new initial values each time, not the stored ones."""

    scope: ResetScope = "paper"
    fresh_draw: bool = False

    SOURCE: ClassVar = (
        "Nikishin et al. 2022; Soft Weight Rescaling, appendix D.2; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    NEUTRAL: ClassVar[Neutral] = "it always resets the head"
    PAPER: ClassVar = swr_study.scenario_rows("head_reset", "head_reset")

    def setup(self, ctx: Context) -> None:
        layers = select_layers(ctx.roles, self.scope)
        names = [f"{layer}.{part}" for layer in layers for part in ("weight", "bias")]
        penalties.store_anchors(ctx, (name for name in names if has_tensor(ctx.model, name)))

    def stage_start(self, ctx: Context) -> None:
        if ctx.clock.stage == 0:
            return
        note = f"new data, {self.scope}"
        if self.fresh_draw:
            ctx.redraw(penalties.stored_anchors(ctx), note)
        else:
            ctx.rewrite(penalties.stored_anchors(ctx), note)
