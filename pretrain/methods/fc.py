"""FC: at every round start, redraw the fully-connected layers at the end of the network.

The Impact of Reinitialization on Generalization in Convolutional Neural Networks.
I. Alabdulmohsin, H. Maennel, D. Keysers, 2021.
Paper: https://arxiv.org/abs/2109.00267, section 1; no public code
It follows RIFLE (X. Li et al., ICML 2020: the last fully-connected layers) and Retraining (K. Zhao
et al., ICPR 2018: the head only).

    round start r > 0:  weight and bias of the layers in `scope` <- fresh draw

| setting | paper                                                        | code | here        |
|---------|--------------------------------------------------------------|------|-------------|
| scope   | "the last fully-connected layers"; Retraining: the head only | -    | all; `head` |

Norm layers between the fully-connected layers are reset with them. The convolutional part keeps
every bit. The method equals `lw` after its last block without rescaling and normaliser.

Differences: none known; the paper reports no accuracy on TinyImageNet.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from fsbench.backbones.architectures import RoleMap, below
from pretrain.method import RoundMethod
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context


def select_tail(names: Sequence[str], roles: RoleMap) -> tuple[str, ...]:
    """Return the tensors from the first fully-connected layer on, without convolutions."""
    first = next(i for i, name in enumerate(names) if below(name, roles.fully_connected))
    convolutions = set(roles.layers) - set(roles.fully_connected)
    return tuple(name for name in names[first:] if not below(name, convolutions))


class Fc(RoundMethod):
    """Settings of FC. scope: all fully-connected layers, or the head alone."""

    scope: Literal["all", "head"] = "all"

    SOURCE: ClassVar = "reinitialization study, section 1; RIFLE; Zhao et al. 2018"
    NEUTRAL: ClassVar[Neutral] = "it always redraws the head"

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0:
            return
        names = ctx.plain_names()
        head = tuple(name for name in names if below(name, (ctx.roles.head,)))
        tensors = head if self.scope == "head" else select_tail(names, ctx.roles)
        ctx.redraw(tensors, f"fully-connected layers: {self.scope}")
