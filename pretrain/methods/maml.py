"""MAML: initial weights from which a few gradient steps on a task's support answer its queries.

Finn et al. 2017, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks", algorithm 2;
the steps are learn2learn's.

    theta_T = theta - inner_lr grad L(support; theta), `steps` times      theta: head included
    gradient of the mean over tasks of L(queries; theta_T), through the steps

| setting     | paper, miniImageNet               | here                                       |
|-------------|-----------------------------------|--------------------------------------------|
| inner_lr    | 0.01                              | 0.01                                       |
| steps       | 5, and 10 in the test             | 5 in both                                  |
| first_order | both                              | false; true leaves the second derivatives  |
| outer       | Adam, sum over 4 or 2 tasks       | Adam, mean over the tasks of a batch       |
| batch norm  | of the batch, in the test as well | of the batch in training; validation and   |
|             |                                   | export by the running statistics           |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fsbench import l2l
from pretrain.episodic import InnerLoop

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.context import Context
    from pretrain.episodic import Task


class Maml(InnerLoop):
    """All weights are adapted to a task."""

    SOURCE: ClassVar = "MAML (Finn et al. 2017), algorithm 2; code learnables/learn2learn"
    PILOT: ClassVar = {**InnerLoop.PILOT, "maml.inner_lr": 0.5, "maml.steps": 1}
    TOY: ClassVar = {**InnerLoop.TOY, "maml.inner_lr": 0.5, "maml.steps": 1}

    def answers(self, ctx: Context, task: Task) -> Tensor:
        learner = l2l.maml(ctx.model, self.inner_lr, self.differentiates_once(ctx))
        return self.adapted(ctx, learner, task.support, task.support_labels)(task.query)
