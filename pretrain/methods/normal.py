"""Plain training: the baseline of every comparison, under the plan of the compared method.

Simulated Annealing in Early Layers Leads to Better Generalization. A. M. Sarfi et al., CVPR 2023.
Paper: https://arxiv.org/abs/2304.04858, section 4.1, Tables 1 and 2 ("Normal", "Normal (long)")
Code:  https://github.com/amiiir-sarfi/SEAL, exp_mode=normal

    v <- momentum v + grad L(theta) + weight_decay theta,    theta <- theta - eta v

A round is what SEAL calls a generation.

| setting         | paper                       | official code   | here                          |
|-----------------|-----------------------------|-----------------|-------------------------------|
| rounds          | 1; 10 for "Normal (long)"   | num_generations | 1 and 10 in the recipes       |
| epochs/round    | 160                         | 160             | 160                           |
| schedule        | cosine; restarts not stated | restarts        | restarts; or `single_cycle`   |
| optimizer state | not stated                  | new every round | new every round (`opt_reset`) |

Differences: none by default. The official code restarts the cosine in every round even without
forgetting, so only forgetting differs between methods; `schedule=single_cycle` is one cosine over
all rounds. The rows `vanilla` come from the soft weight rescaling paper
(https://arxiv.org/abs/2507.04683, Tables 1 and 5); the rows `study_...` from the reinitialization
study (https://arxiv.org/abs/2109.00267, Table 2), whose other methods are selected by --method.
"""

from typing import ClassVar

from pretrain.method import Method
from pretrain.recipes import reinit_study, swr_study
from pretrain.recipes.recipe import ActingOrder, PaperRecipe, PublishedFigure, seal_rows


class Normal(Method):
    """Plain training, which has no settings."""

    SOURCE: ClassVar = "SEAL, section 4.1; code amiiir-sarfi/SEAL, exp_mode=normal"
    RANK: ClassVar = ActingOrder.ROUND
    NEUTRAL: ClassVar = {}
    PAPER: ClassVar = (
        PaperRecipe(
            name="normal",
            paper="SEAL",
            row="Table 2",
            overrides={"plan.rounds": 1},
            figures=(PublishedFigure(accuracy=0.5437, at="generation 1"),),
        ),
        *seal_rows("normal_long", 0.5116, 0.4927),
        PaperRecipe(
            name="normal_long_single_cycle",
            paper="SEAL",
            row="official code, long_cosine_lr",
            overrides={"schedule": "single_cycle"},
        ),
        *swr_study.paper_rows("normal", row="vanilla"),
        *reinit_study.study_rows(),
    )
