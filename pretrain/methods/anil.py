"""ANIL: MAML whose inner steps adapt the head alone; the features are reused.

Rapid Learning or Feature Reuse? Towards Understanding the Effectiveness of MAML. A. Raghu,
M. Raghu, S. Bengio, O. Vinyals, ICLR 2020.
Paper: https://arxiv.org/abs/1909.09157
Code:  https://github.com/learnables/learn2learn, which takes the inner steps here

    phi_T = phi - inner_lr grad_phi L(head_phi(f(support))), `steps` times     phi: the head
    outer gradient: of the mean over tasks of L(head_phi_T(f(query))), through the inner steps,
    with respect to phi and f

Settings and their differences from the paper are those of maml.py.

Differences: features of support and query come from two forward passes, so batch norm does not mix
them in training (learn2learn's example uses one pass).
"""

from typing import ClassVar

from torch import Tensor

from pretrain.training import l2l
from pretrain.training.context import Context
from pretrain.training.episodes import InnerLoop, TaskImages, head_inputs


class Anil(InnerLoop):
    """Settings of ANIL, which adapts the head to a task on fixed features."""

    SOURCE: ClassVar = "ANIL (Raghu et al. 2020); code learnables/learn2learn"
    EVERY: ClassVar = {**InnerLoop.EVERY, "anil.inner_lr": 0.1}

    def query_logits(self, ctx: Context, task: TaskImages) -> Tensor:
        head = ctx.model.get_submodule(ctx.roles.head)
        learner = l2l.maml_copy(head, self.inner_lr, self.differentiates_once(ctx))
        support, query = head_inputs(ctx, task.support), head_inputs(ctx, task.query)
        return self.adapted(ctx, learner, support, task.support_labels)(query)
