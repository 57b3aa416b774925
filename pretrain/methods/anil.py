"""ANIL: MAML whose steps on a task move the head alone; the features are reused as they are.

Raghu et al. 2020, "Rapid Learning or Feature Reuse? Towards Understanding the Effectiveness of
MAML"; the steps are learn2learn's.

    phi_T = phi - inner_lr grad_phi L(head_phi(f(support))), `steps` times     phi: the head
    gradient of the mean over tasks of L(head_phi_T(f(queries))), through the steps, into phi and f

Settings and differences are those of maml.py: the papers share them. The features of support and
queries come from two passes, so in training batch norm does not mix them (learn2learn's example
takes one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fsbench import l2l
from pretrain.episodic import InnerLoop, head_inputs

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.context import Context
    from pretrain.episodic import Task


class Anil(InnerLoop):
    """The head is adapted to a task, on fixed features."""

    SOURCE: ClassVar = "ANIL (Raghu et al. 2020); code learnables/learn2learn"
    PILOT: ClassVar = {**InnerLoop.PILOT, "anil.inner_lr": 0.1}
    TOY: ClassVar = {**InnerLoop.TOY, "anil.inner_lr": 0.1}

    def answers(self, ctx: Context, task: Task) -> Tensor:
        head = ctx.model.get_submodule(ctx.roles.head)
        learner = l2l.maml(head, self.inner_lr, self.differentiates_once(ctx))
        support, query = head_inputs(ctx, task.support), head_inputs(ctx, task.query)
        return self.adapted(ctx, learner, support, task.support_labels)(query)
