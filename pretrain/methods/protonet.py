"""Prototypical networks: assign a query to the class with the nearest mean support feature.

Prototypical Networks for Few-shot Learning. J. Snell, K. Swersky, R. Zemel, NeurIPS 2017.
Paper: https://arxiv.org/abs/1703.05175, Algorithm 1
Code:  https://github.com/learnables/learn2learn, whose classifier is used here

    c_k = mean of f(support of class k)     logit_k = -|f(query) - c_k|^2     cross-entropy

| setting | paper, miniImageNet               | here                                            |
|---------|-----------------------------------|-------------------------------------------------|
| n_way   | 20 in training, 5 in the test     | 5 in both, as for the other meta-learners       |
| f       | four convolutions, all outputs    | the input of the network's head                 |
| outer   | Adam 0.001, halved in steps       | Adam 0.001, the schedule of the recipe          |

Differences: those of the table. The head gets no gradient and keeps its initial values.
"""

from typing import ClassVar

from torch import Tensor

from pretrain.training import l2l
from pretrain.training.context import Context
from pretrain.training.episodes import MetaLearner, TaskImages, head_inputs


class Protonet(MetaLearner):
    """Settings of prototypical networks, which adapt nothing to a task."""

    SOURCE: ClassVar = (
        "Prototypical Networks (Snell et al. 2017), algorithm 1; code learnables/learn2learn"
    )

    def query_logits(self, ctx: Context, task: TaskImages) -> Tensor:
        support, query = (
            head_inputs(ctx, images).flatten(1).float() for images in (task.support, task.query)
        )
        return l2l.prototype_classifier(support, task.support_labels)(query)
