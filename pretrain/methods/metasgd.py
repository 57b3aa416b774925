"""Meta-SGD: MAML whose step sizes are learned as well, one for every weight.

Li et al. 2017, "Meta-SGD: Learning to Learn Quickly for Few-Shot Learning", algorithm 1; the steps
are learn2learn's.

    theta_T = theta - alpha * grad L(support; theta)        alpha: as many numbers as theta
    gradient of the mean over tasks of L(queries; theta_T), into theta and alpha

| setting  | paper                      | here                                                   |
|----------|----------------------------|--------------------------------------------------------|
| steps    | 1                          | 1                                                      |
| inner_lr | alpha starts at random     | 0.01 everywhere, as learn2learn starts at one number   |
| outer    | one rate for theta, alpha  | the run's optimizer has both; alpha is never decayed   |

The rates lie in the memory of the run, which checkpoints hold; the exported network has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from fsbench import l2l
from pretrain.episodic import InnerLoop
from pretrain.method import Group

if TYPE_CHECKING:
    from pretrain.context import Context
    from pretrain.episodic import Task

PREFIX = "rate."


class Metasgd(InnerLoop):
    """inner_lr: where all step sizes start."""

    steps: int = Field(1, ge=1)

    SOURCE: ClassVar = "Meta-SGD (Li et al. 2017), algorithm 1; code learnables/learn2learn"
    PILOT: ClassVar = {**InnerLoop.PILOT, "metasgd.inner_lr": 0.5}
    TOY: ClassVar = {**InnerLoop.TOY, "metasgd.inner_lr": 0.5}

    def setup(self, ctx: Context) -> None:
        for name, weight in ctx.model.named_parameters():
            ctx.memory[PREFIX + name] = torch.full_like(weight.detach(), self.inner_lr)

    def param_groups(self, ctx: Context, groups: list[Group]) -> list[Group]:
        rates = self.rates(ctx)
        ctx.parameters |= rates
        return [*groups, Group(tuple(rates), decay=0.0)]

    def rates(self, ctx: Context) -> dict[str, nn.Parameter]:
        """The step sizes, in the order of the weights; what a checkpoint gave is trained again."""
        memory, names = ctx.memory, [PREFIX + name for name, _ in ctx.model.named_parameters()]
        for name in names:
            if not isinstance(memory[name], nn.Parameter):
                memory[name] = nn.Parameter(memory[name])
        return {name: memory[name] for name in names}

    def answers(self, ctx: Context, task: Task) -> Tensor:
        rates = self.rates(ctx).values()
        learner = l2l.metasgd(ctx.model, rates, self.differentiates_once(ctx))
        return self.adapted(ctx, learner, task.support, task.support_labels)(task.query)
