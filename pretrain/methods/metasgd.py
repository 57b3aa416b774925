"""Meta-SGD: MAML that also learns one step size per weight.

Meta-SGD: Learning to Learn Quickly for Few-Shot Learning. Z. Li, F. Zhou, F. Chen, H. Li, 2017.
Paper: https://arxiv.org/abs/1707.09835, Algorithm 1
Code:  https://github.com/learnables/learn2learn, which takes the inner steps here

    theta_T = theta - alpha * grad L(support; theta)        alpha: as many numbers as theta
    outer gradient: of the mean over tasks of L(query; theta_T), with respect to theta and alpha

| setting  | paper                     | here                                                    |
|----------|---------------------------|---------------------------------------------------------|
| steps    | 1                         | 1                                                       |
| inner_lr | alpha starts at random    | 0.01 everywhere: learn2learn starts at one number       |
| outer    | one rate for theta, alpha | the optimizer of the run has both; no decay on alpha    |

The step sizes are stored in the memory of the run and in its checkpoints, not in the exported
network.

Differences: those of the last two rows.
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from pretrain.training import l2l
from pretrain.training.context import Context, ParameterGroup
from pretrain.training.episodes import InnerLoop, TaskImages

PREFIX = "rate."
"""Of the names of the step sizes in the memory of the run."""


class Metasgd(InnerLoop):
    """Settings of Meta-SGD. inner_lr: initial value of all step sizes."""

    steps: int = Field(1, ge=1)

    SOURCE: ClassVar = "Meta-SGD (Li et al. 2017), algorithm 1; code learnables/learn2learn"
    EVERY: ClassVar = {**InnerLoop.EVERY, "metasgd.inner_lr": 0.5}

    def setup(self, ctx: Context) -> None:
        for name, weight in ctx.model.named_parameters():
            ctx.memory[PREFIX + name] = torch.full_like(weight.detach(), self.inner_lr)

    def param_groups(self, ctx: Context, groups: list[ParameterGroup]) -> list[ParameterGroup]:
        rates = self.rates(ctx)
        ctx.parameters |= rates
        return [*groups, ParameterGroup(tuple(rates), decay=0.0)]

    def rates(self, ctx: Context) -> dict[str, nn.Parameter]:
        """Return the step sizes in the order of the weights, as parameters even after resuming."""
        memory, names = ctx.memory, [PREFIX + name for name, _ in ctx.model.named_parameters()]
        for name in names:
            if not isinstance(memory[name], nn.Parameter):
                memory[name] = nn.Parameter(memory[name])
        return {name: memory[name] for name in names}

    def query_logits(self, ctx: Context, task: TaskImages) -> Tensor:
        rates = self.rates(ctx).values()
        learner = l2l.metasgd_copy(ctx.model, rates, self.differentiates_once(ctx))
        return self.adapted(ctx, learner, task.support, task.support_labels)(task.query)
