"""SEAL's ablation "+ Reinit": later-layer forgetting at the round start, then SEAL.

SEAL Table 7 (methods.md D5): the late kernels and the head's weight are re-drawn as in llf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pretrain.events import need_rounds
from pretrain.method import Neutral
from pretrain.methods.llf import forget
from pretrain.methods.seal import Seal, paper_row
from pretrain.surgery import END

if TYPE_CHECKING:
    from pretrain.context import Context
    from pretrain.recipe import Recipe


class SealReinit(Seal):
    """SEAL with the late layers re-drawn at every round start but the first."""

    SOURCE: ClassVar = "SEAL Table 7, + Reinit; code amiiir-sarfi/SEAL"
    NEUTRAL: ClassVar[Neutral] = {"ascent_share": 0.0, "threshold": END}
    PAPER: ClassVar = paper_row("seal_reinit", 0.5682, 0.5887, "Table 7")

    def check(self, recipe: Recipe) -> None:
        super().check(recipe)
        if self.threshold != END:
            need_rounds(self, recipe)

    def round_start(self, ctx: Context) -> None:
        super().round_start(ctx)
        if ctx.clock.round > 0:
            forget(ctx, self.threshold)
