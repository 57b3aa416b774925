"""Shrink and perturb: when new data arrive, move all parameters part of the way to initial ones.

On Warm-Starting Neural Network Training. J. T. Ash, R. P. Adams, NeurIPS 2020.
Paper: https://arxiv.org/abs/1910.08475
Here in the form of soft weight rescaling (https://arxiv.org/abs/2507.04683, appendix D.2) and its
code, https://github.com/CILAB-RL-TEAM/soft-weight-rescaling.

    new data:  theta <- (1 - lam) theta + lam theta_0             form = paper
               W     <- shrink W + noise N(0, 1)                  form = ash_adams

| setting       | SWR paper                     | SWR code | DASH code (Ash & Adams) | here        |
|---------------|-------------------------------|----------|-------------------------|-------------|
| lam           | .8; .4 on continual-limited   | same     | -                       | 0.8         |
| theta_0       | the stored initial parameters | same     | -                       | stored      |
| fresh_draw    | no                            | no       | -                       | false       |
| shrink, noise | -                             | -        | 0.3, 0.01               | 0.3, 0.01   |

`form=paper` moves all parameters, norm scales and shifts included, and leaves running statistics
alone; `fresh_draw` takes new initial weights every time. `form=ash_adams` moves weights and biases
of convolutions and linear layers, with the values of
https://github.com/baekrok/DASH-Direction-Aware-SHrinking. The optimizer's state is kept (recipe
field `opt_reset`).

Differences: none by default.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pretrain.bases import penalties
from pretrain.method import StageMethod
from pretrain.recipes import swr_study
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context
from pretrain.weights import surgery


class ShrinkPerturb(StageMethod):
    """Settings of shrink and perturb.

    lam: part of the way, from 0 (none) to 1; fresh_draw: move to new initial weights instead of the
    stored ones; form, shrink, noise: see the equations.
    """

    form: Literal["paper", "ash_adams"] = "paper"
    lam: float = Field(0.8, ge=0, le=1)
    fresh_draw: bool = False
    shrink: float = Field(0.3, ge=0, le=1)
    noise: float = Field(0.01, ge=0)

    SOURCE: ClassVar = (
        "Ash & Adams 2020; Soft Weight Rescaling, appendix D.2; "
        "code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    PAPER: ClassVar = swr_study.scenario_rows("shrink_perturb", "shrink_perturb")

    def setup(self, ctx: Context) -> None:
        if self.form == "paper" and not self.fresh_draw:
            penalties.store_anchors(ctx, ctx.plain_names(trained=True))

    def stage_start(self, ctx: Context) -> None:
        if ctx.clock.stage == 0:
            return
        if self.form == "ash_adams":
            ctx.rewrite(self.perturbed(ctx), f"times {self.shrink:g}, noise {self.noise:g}")
        elif self.lam > 0:
            target = "a fresh" if self.fresh_draw else "the initial"
            ctx.rewrite(self.interpolated(ctx), f"{self.lam:g} of the way to {target} draw")

    def interpolated(self, ctx: Context) -> dict[str, Tensor]:
        """Return all parameters, moved by `lam` of the way to theta_0."""
        if self.fresh_draw:
            ends = ctx.fresh(ctx.plain_names(trained=True))
        else:
            ends = penalties.stored_anchors(ctx)
        starts = {name: surgery.get_weight(ctx.model, name).detach() for name in ends}
        return {n: torch.lerp(starts[n], ends[n].to(ctx.device), self.lam) for n in ends}

    def perturbed(self, ctx: Context) -> dict[str, Tensor]:
        """Return weights and biases of convolutions and linear layers, shrunk and with noise."""
        generator = ctx.generator("noise")
        names = [f"{layer}.{part}" for layer in ctx.roles.layers for part in ("weight", "bias")]
        perturbed = {}
        for name in (name for name in names if surgery.has_tensor(ctx.model, name)):
            weight = surgery.get_weight(ctx.model, name).detach()
            gaussian = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
            perturbed[name] = self.shrink * weight + self.noise * gaussian.to(weight.device)
        return perturbed
