"""SWR + re-init: soft weight rescaling, with the norms at the last event as the target.

Recovering Plasticity of Neural Networks via Soft Weight Rescaling. S. Oh, S. Park, I. Han,
K.-J. Kim, 2025.
Paper: https://arxiv.org/abs/2507.04683, appendix E, Table 5 ("SWR + re-init")
Code:  https://github.com/CILAB-RL-TEAM/soft-weight-rescaling, flag --reinit

    event:  n_l <- |W_l|                    (otherwise as in swr.py)

Despite the paper's name for it, no weight is initialised again.

| setting      | paper               | official code                       | here            |
|--------------|---------------------|-------------------------------------|-----------------|
| on           | learning-rate drops | also new data, the first chunk too  | lr_drop         |
| every_epochs | -                   | -                                   | 0: never        |

SWR does not depend on the learning rate, so after a drop it would pull norms down faster than
training can raise them; the new anchor removes that pull.

Differences: `every_epochs` re-anchors at fixed intervals, for schedules without drops (cosine).
"""

from typing import ClassVar, Literal

from pydantic import Field

from fsbench.core.errors import UsageError
from pretrain.method import require_stages
from pretrain.methods.swr import Swr, get_layer_weights
from pretrain.recipes import schedules, swr_study
from pretrain.recipes.recipe import Neutral, Recipe
from pretrain.training.context import Context
from pretrain.weights.surgery import frobenius_norms


class SwrReanchor(Swr):
    """Settings of SWR + re-init; every_epochs: also re-anchor at this interval in a round."""

    on: Literal["lr_drop", "new_data", "both", "none"] = "lr_drop"
    every_epochs: int = Field(0, ge=0)

    SOURCE: ClassVar = (
        "Soft Weight Rescaling, appendix E, SWR + re-init; code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    EVERY: ClassVar = {"schedule": "step"}
    PAPER: ClassVar = swr_study.decay_rows("swr_reanchor", "swr_reanchor")

    def check(self, recipe: Recipe) -> None:
        if self.on in ("lr_drop", "both") and not schedules.can_drop(recipe):
            raise UsageError(
                f"{self.name} would never re-anchor: the {recipe.schedule} schedule never drops the"
                f" learning rate in {recipe.plan.epochs} epochs",
                fix=f"--set schedule=step, or --set {self.name}.on=none with"
                f" --set {self.name}.every_epochs=N",
            )
        if self.on in ("new_data", "both"):
            require_stages(self, recipe)
        if self.on == "none" and not 0 < self.every_epochs < recipe.plan.epochs:
            raise UsageError(
                f"{self.name} would never re-anchor: on=none and every_epochs="
                f"{self.every_epochs} of {recipe.plan.epochs} epochs per round",
                fix=f"--set {self.name}.on=lr_drop, or every_epochs below plan.epochs",
            )

    def lr_changed(self, ctx: Context, old: float, new: float) -> None:
        if self.on in ("lr_drop", "both"):
            self.reanchor(ctx)

    def stage_start(self, ctx: Context) -> None:
        if self.on in ("new_data", "both") and ctx.clock.stage > 0:
            self.reanchor(ctx)

    def epoch_start(self, ctx: Context) -> None:
        if self.every_epochs and ctx.clock.epoch and ctx.clock.epoch % self.every_epochs == 0:
            self.reanchor(ctx)

    def reanchor(self, ctx: Context) -> None:
        """Make the current norms the target."""
        ctx.memory["norms"] = frobenius_norms(get_layer_weights(ctx))
