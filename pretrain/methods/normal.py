"""Plain training: the baseline of every comparison, under whatever Plan the others get.

SEAL (paper 4.1, Tables 1 and 2; methods.md D1, D2). "Normal" is one round of 160 epochs, "Normal
(long)" ten. SEAL's code restarts the cosine every round even without forgetting, so only forgetting
differs between methods: that is our default. `schedule=single_cycle` is one cosine over all rounds.
The rows `vanilla` are those of the soft-weight-rescaling paper (methods.md B8), the rows `study_`
those of the reinitialization study, which other methods take over by --method.
"""

from __future__ import annotations

from typing import ClassVar

from pretrain import reinit_study, swr_study
from pretrain.method import Figure, Method, PaperRecipe, Rank


class Normal(Method):
    """No hook, no setting."""

    SOURCE: ClassVar = "SEAL, section 4.1; code amiiir-sarfi/SEAL, exp_mode=normal"
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar = {}
    PAPER: ClassVar = (
        PaperRecipe(
            name="normal",
            paper="SEAL",
            row="Table 2",
            overrides={"plan.rounds": 1},
            figures=(Figure(accuracy=0.5437, at="generation 1"),),
        ),
        PaperRecipe(
            name="normal_long",
            paper="SEAL",
            row="Table 2",
            figures=(
                Figure(accuracy=0.5116, at="generation 3", overrides=("plan.rounds=3",)),
                Figure(accuracy=0.4927, at="generation 10"),
            ),
        ),
        PaperRecipe(
            name="normal_long_single_cycle",
            paper="SEAL",
            row="official code, long_cosine_lr",
            overrides={"schedule": "single_cycle"},
        ),
        *swr_study.rows("normal", 0.3912, 0.4126, row="vanilla"),
        *reinit_study.rows(),
    )
