"""SEAL: ascend on the early layers in the first quarter of every round but the first.

Simulated Annealing in Early Layers Leads to Better Generalization. A. M. Sarfi, Z. Karimpour,
M. Chaudhary, N. M. Khalid, M. Ravanelli, S. Mudur, E. Belilovsky, CVPR 2023.
Paper: https://arxiv.org/abs/2304.04858, eq. 3 and section 3.2
Code:  https://github.com/amiiir-sarfi/SEAL

    round r > 0, epoch e < k = E // 4:   theta_early <- theta_early + S eta_e m     (ascent)
                                         theta_late  <- theta_late  - eta_e m       (descent)
    otherwise:                           plain descent everywhere

m is the momentum buffer. It is dropped at the round start and again at epoch k, whatever the
recipe's `opt_reset` says: otherwise the momentum of the previous phase would continue.
Early layers include the parameters of their norm layers. A round is the paper's generation.

| setting       | paper                        | official code | here                          |
|---------------|------------------------------|---------------|-------------------------------|
| ascent_factor | S = 0.01                     | 0.01          | 0.01; by ratio in small plans |
| ascent_share  | k / E = 1/4                  | 1/4           | 1/4                           |
| ascent_decay  | sign adjusted: true decay -1 | 0             | -1; 0: no decay in ascent     |
| threshold     | L = 23, first of layer3      | same          | auto: layer3 in a ResNet-50   |

The ascent makes the network's answers random, and the rest of the round trains it again (section
3.2). How much of a round is left for that is the ratio

    descent / ascent = (sum of eta_e over descent steps) / (S * sum of eta_e over ascent steps)

of the early layers, 168 in the paper. `toy/` and `pilot/` have an S with that ratio, `regime/` one
chosen on validation (329), and a run warns below 50. In few steps such an ascent need not reach
chance; that of seal_long_ascent.py does in `pilot/`, by a larger S. The accuracy on training images
before and after every ascent is in rewrites.jsonl and run.json, with a warning where it fell less
than half way to chance.

Differences: round 0 is plain training, as in the official code (eq. 3 alone would ascend there
too). Ascent flips the gradient and uses the rate S eta, where the official code sets a negative
rate: the same bits with SGD, and correct for adaptive optimizers too. The flip comes before the
penalties of other methods, which, like the decay, shrink weights in both phases.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import nn

from fsbench.backbones.architectures import RoleMap
from fsbench.core.errors import UsageError
from pretrain.method import Method, require_rounds
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe, seal_rows
from pretrain.recipes.schedules import sum_rates
from pretrain.training.context import Context, ParameterGroup
from pretrain.training.validation import training_accuracy
from pretrain.weights import surgery

PAPER_RATIO = 168
"""Descent / ascent of the paper's recipe, see `Seal.descent_ratio`."""


def describe_ratio(ratio: float) -> str:
    return f"Descent / ascent is {ratio:.3g} by learning rates, {PAPER_RATIO} in the paper"


class Seal(Method):
    """Settings of SEAL.

    ascent_share: part of a round's epochs, rounded down; 0 switches the ascent off. threshold: name
    of the first late module, or `auto`; with `end` all layers are early.
    """

    ascent_factor: float = Field(0.01, ge=0)
    ascent_share: float = Field(0.25, ge=0, le=1)
    ascent_decay: Literal[-1, 0] = -1
    threshold: str = surgery.AUTO

    SOURCE: ClassVar = "SEAL (CVPR 2023), eq. 3; official code amiiir-sarfi/SEAL"
    RANK: ClassVar = ActingOrder.ROUND
    NEUTRAL: ClassVar[Neutral] = {"ascent_share": 0.0}
    PILOT: ClassVar = {"seal.ascent_factor": 0.007}
    TOY: ClassVar = {"seal.ascent_factor": 0.007}
    PAPER: ClassVar = seal_rows("seal", 0.5825, 0.5922)
    LEAST_RATIO: ClassVar = 50  # a run warns if its descent / ascent is below

    def check(self, recipe: Recipe) -> None:
        threshold = surgery.find_threshold(recipe, self.threshold)
        if self.ascent_share == 0:
            return
        require_rounds(self, recipe)
        if self.ascent_epochs(recipe) == 0:
            raise UsageError(
                f"{self.name} would never ascend: {self.ascent_share:g} of plan.epochs ="
                f" {recipe.plan.epochs} rounds down to 0 epochs",
                fix="use at least 4 epochs per round (--set plan.epochs=4)",
            )
        if not self.ascent_set(*surgery.build_on_meta(recipe), threshold):
            raise UsageError(
                f"{self.name} would never ascend: threshold {threshold} of {recipe.architecture}"
                " leaves no early layer",
                fix=f"choose a module inside the network, or --set {self.name}.threshold=auto",
            )

    def phase(self, recipe: Recipe) -> int:
        return self.ascent_epochs(recipe)

    def resolved(self, recipe: Recipe) -> Mapping[str, object]:
        return {"threshold": surgery.find_threshold(recipe, self.threshold)}

    def ascent_epochs(self, recipe: Recipe) -> int:
        """Return k, the epochs of ascent per round."""
        return int(round(self.ascent_share * recipe.plan.epochs, 9))  # 0.29 * 100 is below 29

    def descent_ratio(self, recipe: Recipe, images: int) -> float:
        """Return descent / ascent, by sums of learning rates; inf without an ascent.

        images: of the source. It is that of the last round, the least under `single_cycle`, and
        without drops of `plateau` and early ends of rounds, which make it smaller.
        """
        last = recipe.plan.total_rounds - 1
        ascent = sum_rates(recipe, self.ascent_epochs(recipe), images, last)
        descent = sum_rates(recipe, recipe.plan.epochs, images, last) - ascent
        return descent / ascent / self.ascent_factor if ascent * self.ascent_factor else math.inf

    def ascending(self, ctx: Context) -> bool:
        """Return whether the next step is an ascent step."""
        return ctx.clock.round > 0 and ctx.clock.epoch < self.ascent_epochs(ctx.recipe)

    def ascent_set(self, model: nn.Module, roles: RoleMap, threshold: str) -> tuple[str, ...]:
        """Return the names of the parameters that ascend: the early ones."""
        return surgery.split_parameters(model, threshold)[0]

    def round_start(self, ctx: Context) -> None:
        threshold = surgery.find_threshold(ctx.recipe, self.threshold)
        ctx.memory["ascent_set"] = list(self.ascent_set(ctx.model, ctx.roles, threshold))
        if ctx.clock.round == 0:
            self.warn_of_short_descent(ctx)
        if self.ascending(ctx) and ctx.recipe.loader != "episodes":  # not of tasks
            ctx.memory["accuracy"] = training_accuracy(ctx)

    def param_groups(self, ctx: Context, groups: list[ParameterGroup]) -> list[ParameterGroup]:
        if not self.ascending(ctx):
            return groups
        up = set(ctx.memory["ascent_set"])
        descent = [replace(g, names=tuple(n for n in g.names if n not in up)) for g in groups]
        ascent = [
            replace(
                g,
                names=tuple(n for n in g.names if n in up),
                lr_scale=g.lr_scale * self.ascent_factor,
                decay=-g.decay * self.ascent_decay,
            )
            for g in groups
        ]
        return [*descent, *ascent]

    def epoch_start(self, ctx: Context) -> None:
        ascent = self.ascent_epochs(ctx.recipe)
        if ctx.clock.round > 0 and ascent and ctx.clock.epoch in (0, ascent):
            ctx.rebuild_optimizer("all")
            if ctx.clock.epoch == ascent:
                self.record_ascent(ctx)

    def round_end(self, ctx: Context) -> None:
        if self.ascending(ctx):  # to the end of the round
            self.record_ascent(ctx)

    def record_ascent(self, ctx: Context) -> None:
        """Log the accuracy around an ascent, and warn if it fell less than half way to chance."""
        if "accuracy" not in ctx.memory:
            return
        before, after = ctx.memory.pop("accuracy"), training_accuracy(ctx)
        ctx.memory.setdefault("ascents", []).append([before, after])
        note = f"training accuracy {before:.1%} before the ascent, {after:.1%} after it"
        ctx.log((), 0.0, note)
        if after > (before + 1 / ctx.classes) / 2:
            ratio = self.descent_ratio(ctx.recipe, ctx.loader.epoch_size(ctx.clock.stage))
            ctx.report.log(
                f"warning: {self.name} round {ctx.clock.round}: {note}, not at chance. First try"
                " longer rounds or more steps (plan.epochs, plan.epoch_images): a larger"
                f" {self.name}.ascent_factor shortens the recovery. {describe_ratio(ratio)}"
            )

    def warn_of_short_descent(self, ctx: Context) -> None:
        """Warn if the descent of a round is too short beside its ascent."""
        ratio = self.descent_ratio(ctx.recipe, ctx.loader.epoch_size(ctx.clock.stage))
        if ratio < self.LEAST_RATIO:
            factor = self.ascent_factor * ratio / PAPER_RATIO
            ctx.report.log(
                f"warning: {self.name}: networks may not recover. Lower {self.name}.ascent_factor"
                f" from {self.ascent_factor:g} to {factor:.2g}. {describe_ratio(ratio)}"
            )

    def measured(self, memory: Mapping[str, Any]) -> Mapping[str, object]:
        return {"ascents": memory["ascents"]} if "ascents" in memory else {}

    def after_backward(self, ctx: Context) -> None:
        if self.ascending(ctx):
            gradients = (ctx.parameters[name].grad for name in ctx.memory["ascent_set"])
            torch._foreach_neg_([gradient for gradient in gradients if gradient is not None])
