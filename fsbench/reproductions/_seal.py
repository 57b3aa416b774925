"""What SEAL's claims share: a small residual net on the digits, an ascent as long as the paper's.

The paper ascends 40 epochs of 3,125 steps a generation with S = 0.01. A run of seconds has a few
hundredths of these steps, so the same S would hardly move the early layers. `matched` is the S at
which S times the sum of the learning rates over an ascent is the paper's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsbench.reproductions import _digits

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

PAPERS_S, PAPERS_IMAGES = 0.01, 100_000
GENERATIONS, BATCH = 3, 32


def seal_recipe(
    method: str, epochs: int, seed: int, factor: float = PAPERS_S, generations: int = GENERATIONS
) -> Recipe:
    """factor: S of `seal`, which other methods have no use for."""
    from pretrain.recipes.recipe import Recipe

    settings = {"ascent_factor": factor} if method == "seal" else {}
    return Recipe.model_validate(
        {
            "name": f"paper/{method}",
            "architecture": "toy_resnet",
            "source": "digits",
            "input_size": _digits.SIDE,
            "plan": {"rounds": generations, "epochs": epochs},
            "methods": ({"name": method, **settings},),
            "batch_size": BATCH,
            "lr": 0.1,
            "augmentation": "none",
            "channels_last": False,
            "validate_every": epochs,
            "seed": seed,
        }
    )


def matched_factor(epochs: int, images: int) -> float:
    """S that gives rounds of so many epochs on so many images an ascent of the paper's length."""
    from pretrain.recipes import registry

    papers = ascent_length(registry.get("paper/seal"), PAPERS_IMAGES)
    return PAPERS_S * papers / ascent_length(seal_recipe("seal", epochs, 0), images)


def ascent_length(seal: Recipe, images: int) -> float:
    """Sum of the learning rates over one ascent."""
    from pretrain.recipes import schedules
    from pretrain.recipes.plan import Clock

    steps = images // seal.batch_size
    ascent = int(0.25 * seal.plan.epochs)
    clocks = (Clock(seal.plan, 1, epoch) for epoch in range(ascent))
    return sum(steps * seal.lr * schedules.factor(seal, clock, steps) for clock in clocks)
