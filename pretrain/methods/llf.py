"""Later-layer forgetting: at every round start, later kernels and the head go back to random.

Zhou et al. 2022, "Fortuitous Forgetting in Connectionist Networks"; official code
hlml/fortuitous_forgetting; as SEAL's comparator (methods.md D3, official SEAL code).

    round start r > 0:  W_l <- fresh draw, for every convolution l from `threshold` on (downsample
                        ones included), every hidden linear layer there and the head

Untouched: norm layers (scale, shift, statistics), all biases, the head's too, everything early.
SEAL: threshold layer3, which `auto` takes to other networks (pretrain/thresholds.py); LLF's own
code: layer4 on its small data sets. The official codes draw from kaiming-uniform(a=sqrt 5), a
factor sqrt 6 smaller than the initial law; our default is the initial law,
`redraw=kaiming_uniform_sqrt5` is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pretrain import surgery, thresholds
from pretrain.events import need_rounds
from pretrain.method import Figure, Method, PaperRecipe, Rank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pretrain.context import Context
    from pretrain.recipe import Recipe


def forget(ctx: Context, threshold: str) -> None:
    """Re-draw the kernels from `threshold` on, the head's included."""
    name = thresholds.find(ctx.recipe, threshold)
    _, late = surgery.split(ctx.model, name)
    ctx.redraw(surgery.kernels(ctx.roles.layers, late), f"later layers from {name}")


class LLF(Method):
    """threshold: name of the first module that is forgotten, or auto; `end` forgets nothing."""

    threshold: str = thresholds.AUTO

    SOURCE: ClassVar = "LLF (Zhou et al. 2022); SEAL, section 4.1; code hlml/fortuitous_forgetting"
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar = {"threshold": surgery.END}
    PAPER: ClassVar = (
        PaperRecipe(
            name="llf",
            paper="SEAL",
            row="Table 2",
            figures=(
                Figure(accuracy=0.5612, at="generation 3", overrides=("plan.rounds=3",)),
                Figure(accuracy=0.5692, at="generation 10"),
            ),
        ),
    )

    def check(self, recipe: Recipe) -> None:
        need_rounds(self, recipe)
        thresholds.find(recipe, self.threshold)

    def resolved(self, recipe: Recipe) -> Mapping[str, object]:
        return {"threshold": thresholds.find(recipe, self.threshold)}

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round > 0:
            forget(ctx, self.threshold)
