"""SEAL: gradient ascent on the early layers in the first quarter of every round but the first.

"Simulated Annealing in Early Layers Leads to Better Generalization" (CVPR 2023), eq. 3 and section
3.2; official code amiiir-sarfi/SEAL (methods.md D4).

    round r > 0, epoch e < k = E // 4:   theta_early <- theta_early + S eta_e m     (ascent)
                                         theta_late  <- theta_late  - eta_e m       (descent)
    otherwise:                           plain descent everywhere

m is the momentum buffer, dropped at the round start and again at epoch k. Round 0 is plain training
(official code; eq. 3 alone would ascend there too). Early includes the norm layers' parameters.

| setting       | paper                        | code | here                            |
|---------------|------------------------------|------|---------------------------------|
| ascent_factor | S = 0.01                     | 0.01 | 0.01                            |
| ascent_share  | k / E = 1/4                  | 1/4  | 1/4                             |
| ascent_decay  | sign adjusted: true decay -1 | 0    | -1; 0 for no decay in ascent    |
| threshold     | L = 23, first of layer3      | same | layer3                          |

Why this way: ascent is a flipped gradient with the rate S eta rather than a negative rate. With SGD
the bits are those of the official negative rate, and it is right for adaptive optimizers too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field

from fsbench.errors import UsageError
from pretrain import surgery
from pretrain.method import Figure, Group, Method, Neutral, PaperRecipe, Rank

if TYPE_CHECKING:
    from pretrain.context import Context
    from pretrain.recipe import Recipe


def paper_row(name: str, third: float, tenth: float, table: str) -> tuple[PaperRecipe, ...]:
    """A row of SEAL's tables: accuracy after 3 and after 10 generations."""
    short = Figure(where=f"{table}, generation 3", accuracy=third, overrides=("plan.rounds=3",))
    return (
        PaperRecipe(
            name=name, figures=(short, Figure(where=f"{table}, generation 10", accuracy=tenth))
        ),
    )


class Seal(Method):
    """ascent_share: part of a round's epochs, rounded down; 0 switches the ascent off."""

    ascent_factor: float = Field(0.01, ge=0)
    ascent_share: float = Field(0.25, ge=0, le=1)
    ascent_decay: Literal[-1, 0] = -1
    threshold: str = "layer3"

    SOURCE: ClassVar = "SEAL (CVPR 2023), eq. 3; official code amiiir-sarfi/SEAL"
    RANK: ClassVar = Rank.STEP
    NEUTRAL: ClassVar[Neutral] = {"ascent_share": 0.0}
    PAPER: ClassVar = paper_row("seal", 0.5825, 0.5922, "SEAL Table 2")

    def check(self, recipe: Recipe) -> None:
        if self.ascent_share > 0 and self.ascent_epochs(recipe) == 0:
            raise UsageError(
                f"{self.name} would never ascend: {self.ascent_share:g} of plan.epochs ="
                f" {recipe.plan.epochs} rounds down to 0 epochs",
                fix="use at least 4 epochs a round (--set plan.epochs=4)",
            )

    def ascent_epochs(self, recipe: Recipe) -> int:
        """k: epochs of ascent a round."""
        return int(self.ascent_share * recipe.plan.epochs)

    def ascending(self, ctx: Context) -> bool:
        """Whether the coming step is one of ascent."""
        return ctx.clock.round > 0 and ctx.clock.epoch < self.ascent_epochs(ctx.recipe)

    def ascent_set(self, ctx: Context) -> tuple[str, ...]:
        """Names of the parameters that ascend: the early ones."""
        return surgery.split(ctx.model, self.threshold)[0]

    def round_start(self, ctx: Context) -> None:
        ctx.memory["ascent_set"] = list(self.ascent_set(ctx))

    def param_groups(self, ctx: Context, groups: list[Group]) -> list[Group]:
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
        ends = 0 < ctx.clock.epoch == self.ascent_epochs(ctx.recipe)
        if ctx.clock.round > 0 and ends:
            ctx.rebuild_optimizer("all")

    def after_backward(self, ctx: Context) -> None:
        if self.ascending(ctx):
            named = (ctx.parameters[name].grad for name in ctx.memory["ascent_set"])
            torch._foreach_neg_([gradient for gradient in named if gradient is not None])
