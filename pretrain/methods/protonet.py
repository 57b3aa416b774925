"""Prototypical networks: queries belong to the class whose support has the nearest mean feature.

Snell et al. 2017, "Prototypical Networks for Few-shot Learning", algorithm 1; the classifier is
learn2learn's.

    c_k = mean of f(support of class k)     logit_k = -|f(query) - c_k|^2     cross-entropy

| setting | paper, miniImageNet            | here                                               |
|---------|--------------------------------|----------------------------------------------------|
| way     | more in training (20) than in  | 5 in both, as the other meta-learners              |
|         | the test                       |                                                    |
| f       | four convolutions, all outputs | what the network hands to its head                 |
| outer   | Adam 0.001, halved in steps    | Adam 0.001, the recipe's schedule                  |

The head gets no gradient and stays as it was drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fsbench import l2l
from pretrain.episodic import Episodic, head_inputs

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.context import Context
    from pretrain.episodic import Task


class Protonet(Episodic):
    """Nothing is adapted: a support set is its classes' mean features."""

    SOURCE: ClassVar = (
        "Prototypical Networks (Snell et al. 2017), algorithm 1; code learnables/learn2learn"
    )

    def answers(self, ctx: Context, task: Task) -> Tensor:
        support, query = (
            head_inputs(ctx, images).flatten(1).float() for images in (task.support, task.query)
        )
        return l2l.prototypes(support, task.support_labels)(query)
