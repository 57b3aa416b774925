"""SEAL + Reinit: later-layer forgetting at the round start, then SEAL (ablation).

Simulated Annealing in Early Layers Leads to Better Generalization. A. M. Sarfi et al., CVPR 2023.
Paper: https://arxiv.org/abs/2304.04858, Table 7
Code:  https://github.com/amiiir-sarfi/SEAL

    round start r > 0:  late kernels and the head's weight <- fresh draw,  then eq. 3 (seal.py)

No settings besides those of seal.py; the differences are those of seal.py and llf.py. As in
`paper/llf`, `paper/seal_reinit` redraws by the law of the official code, kaiming-uniform(a=sqrt 5).
"""

from typing import ClassVar

from pretrain.method import require_rounds
from pretrain.methods.llf import redraw_late_layers
from pretrain.methods.seal import Seal
from pretrain.recipes.recipe import Neutral, Recipe, seal_rows
from pretrain.training.context import Context
from pretrain.weights.surgery import END


class SealReinit(Seal):
    """SEAL with the late layers redrawn at every round start except the first."""

    SOURCE: ClassVar = "SEAL Table 7, + Reinit; code amiiir-sarfi/SEAL"
    NEUTRAL: ClassVar[Neutral] = {"ascent_share": 0.0, "threshold": END}
    PAPER: ClassVar = seal_rows("seal_reinit", 0.5682, 0.5887, "Table 7", redraws=True)

    def check(self, recipe: Recipe) -> None:
        super().check(recipe)
        if self.threshold != END:
            require_rounds(self, recipe)

    def round_start(self, ctx: Context) -> None:
        super().round_start(ctx)
        if ctx.clock.round > 0:
            redraw_late_layers(ctx, self.threshold)
