"""FC: at every round start the fully-connected layers at the end go back to random.

"The Impact of Reinitialization", section 1, after RIFLE (Li et al. 2020, the last fully-connected
layers) and Zhao et al. 2018 (the head only) (methods.md A5).

    round start r > 0:  weight and bias of the layers in `scope` <- fresh draw

| setting | study                                                    | here                        |
|---------|----------------------------------------------------------|-----------------------------|
| scope   | "the last fully-connected layers"; Zhao: the head only   | all; `head` is Zhao's       |

Norm layers between them belong to the part that is reset. The convolutional part keeps every bit.
This is `lw` after its last block, without rescaling and normaliser. No figure on TinyImageNet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fsbench.backbones.architectures._roles import below
from pretrain import surgery
from pretrain.events import need_rounds
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsbench.backbones.architectures import RoleMap
    from pretrain.context import Context
    from pretrain.recipe import Recipe


def fully_connected(names: Sequence[str], roles: RoleMap) -> tuple[str, ...]:
    """Tensors from the first fully-connected layer on, norm layers included, convolutions not."""
    first = next(i for i, name in enumerate(names) if below(name, roles.fully_connected))
    convolutions = set(roles.layers) - set(roles.fully_connected)
    return tuple(name for name in names[first:] if not below(name, convolutions))


class Fc(Method):
    """scope: all fully-connected layers, or the head alone."""

    scope: Literal["all", "head"] = "all"

    SOURCE: ClassVar = "reinitialization study, section 1; RIFLE; Zhao et al. 2018"
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar[Neutral] = "it always re-draws the head"

    def check(self, recipe: Recipe) -> None:
        need_rounds(self, recipe)

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0:
            return
        names = surgery.plain_names(ctx.architecture, ctx.classes, ctx.recipe.width)
        head = tuple(name for name in names if below(name, (ctx.roles.head,)))
        chosen = head if self.scope == "head" else fully_connected(names, ctx.roles)
        ctx.redraw(chosen, f"fully-connected layers: {self.scope}")
