"""Later-layer forgetting: at every round start, later kernels and the head go back to random.

Zhou et al. 2022, "Fortuitous Forgetting in Connectionist Networks"; official code
hlml/fortuitous_forgetting; as SEAL's comparator (methods.md D3, official SEAL code).

    round start r > 0:  W_l <- fresh draw, for every convolution l from `threshold` on (downsample
                        ones included) and for the head's weight

Untouched: batch norm (scale, shift, statistics), the head's bias, everything early. SEAL: threshold
layer3. The official codes draw from kaiming-uniform(a=sqrt 5), a factor sqrt 6 smaller than the
initial law; our default is the initial law, `redraw=kaiming_uniform_sqrt5` is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pretrain import surgery
from pretrain.events import need_rounds
from pretrain.method import Figure, Method, PaperRecipe, Rank

if TYPE_CHECKING:
    from pretrain.context import Context
    from pretrain.recipe import Recipe


def forget(ctx: Context, threshold: str) -> None:
    """Re-draw the kernels from `threshold` on, the head's included."""
    _, late = surgery.split(ctx.model, threshold)
    ctx.redraw(surgery.kernels(ctx.roles.layers, late), f"later layers from {threshold}")


class LLF(Method):
    """threshold: name of the first module that is forgotten; `end` forgets nothing."""

    threshold: str = "layer3"

    SOURCE: ClassVar = "LLF (Zhou et al. 2022); SEAL, section 4.1; both official codes"
    RANK: ClassVar = Rank.ROUND
    NEUTRAL: ClassVar = {"threshold": surgery.END}
    PAPER: ClassVar = (
        PaperRecipe(
            name="llf",
            figures=(
                Figure(
                    where="SEAL Table 2, generation 3",
                    accuracy=0.5612,
                    overrides=("plan.rounds=3",),
                ),
                Figure(where="SEAL Table 2, generation 10", accuracy=0.5692),
            ),
        ),
    )

    def check(self, recipe: Recipe) -> None:
        need_rounds(self, recipe)

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round > 0:
            forget(ctx, self.threshold)
