"""The training of soft weight rescaling's paper, on digits.

Appendix D of https://arxiv.org/abs/2507.04683: Adam at 1e-3, no augmentation, no decay, optimizer
state kept between stages. Batches have 32 images, not the paper's 256, so that 1,437 images and a
few seconds still give some thousand steps. A coefficient of SWR acts once per step; each claim
states how its own was chosen.

On clean digits the MLP reaches 97 % with and without regularisation, so most claims teach 40 % of
the digits a wrong label (NOISE); the test labels are right.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fsbench.claims._training import PLAIN, build_claim_recipe
from fsbench.data.source import SourceDataset
from pretrain.method import Method
from pretrain.recipes.plan import scenario_fields
from pretrain.recipes.recipe import Recipe

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.training.context import Context

NOISE = 0.4
"""Part of the training digits with a wrong label."""
BATCH, LR = 32, 1e-3


def build_swr_recipe(
    method: Mapping[str, object] | Method,
    source: SourceDataset,
    seed: int,
    epochs: int,
    scenario: str = "stationary",
    **fields: object,
) -> Recipe:
    """Build the paper's recipe for its MLP; method: name and settings, or a method object."""
    staged = scenario_fields(scenario)
    plan = {"stages": staged.pop("plan.stages"), "epochs": epochs}
    protocol: dict[str, object] = {
        "architecture": "mlp",
        "source": source.facts.name,
        "input_size": source.train.images.shape[-1],
        "batch_size": BATCH,
        "optimizer": "adam",
        "lr": LR,
    }
    return build_claim_recipe([method], plan, seed, **PLAIN | protocol | staged | fields)


def get_kernels(ctx: "Context") -> "list[Tensor]":
    """Return the weights of the convolutions and linear layers, in forward order."""
    from pretrain.weights import surgery

    return [surgery.get_weight(ctx.model, f"{name}.weight").detach() for name in ctx.roles.layers]
