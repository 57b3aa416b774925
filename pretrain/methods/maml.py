"""MAML: learn initial weights that a few steps on the support set adapt to a task.

Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks. C. Finn, P. Abbeel, S. Levine,
ICML 2017.
Paper: https://arxiv.org/abs/1703.03400, Algorithm 2
Code:  https://github.com/learnables/learn2learn, which takes the inner steps here

    theta_T = theta - inner_lr grad L(support; theta), `steps` times      theta: head included
    outer gradient: of the mean over tasks of L(query; theta_T), through the inner steps

| setting     | paper, miniImageNet               | here                                       |
|-------------|-----------------------------------|--------------------------------------------|
| inner_lr    | 0.01                              | 0.01                                       |
| steps       | 5; 10 in the test                 | 5 in both                                  |
| first_order | both                              | false; true drops the second derivatives   |
| outer       | Adam, sum over 4 or 2 tasks       | Adam, mean over the tasks of a batch       |
| batch norm  | batch statistics, in the test too | batch statistics in training; running      |
|             |                                   | statistics in validation and export        |

Differences: those of the last two rows.
"""

from typing import ClassVar

from torch import Tensor

from pretrain.training import l2l
from pretrain.training.context import Context
from pretrain.training.episodes import InnerLoop, TaskImages


class Maml(InnerLoop):
    """Settings of MAML, which adapts all weights to a task."""

    SOURCE: ClassVar = "MAML (Finn et al. 2017), algorithm 2; code learnables/learn2learn"
    EVERY: ClassVar = {**InnerLoop.EVERY, "maml.inner_lr": 0.5, "maml.steps": 1}

    def query_logits(self, ctx: Context, task: TaskImages) -> Tensor:
        learner = l2l.maml_copy(ctx.model, self.inner_lr, self.differentiates_once(ctx))
        return self.adapted(ctx, learner, task.support, task.support_labels)(task.query)
