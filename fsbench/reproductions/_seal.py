"""Recipes that the claims of SEAL share: a small residual network on digits, with scaled ascent.

The paper (https://arxiv.org/abs/2304.04858) ascends for 40 epochs of 3,125 steps per generation
with S = 0.01. A run of seconds has a few hundredths of these steps, so the same S would hardly
change the early layers. `matched_factor` returns the S for which S times the sum of the learning
rates over an ascent equals that of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsbench.reproductions import _digits

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

PAPERS_S, PAPERS_IMAGES = 0.01, 100_000
GENERATIONS, BATCH = 3, 32


def build_seal_recipe(
    method: str, epochs: int, seed: int, factor: float = PAPERS_S, generations: int = GENERATIONS
) -> Recipe:
    """Build the recipe of a method; factor: S, for `seal` only."""
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


def match_factor(epochs: int, images: int) -> float:
    """Return the S that makes an ascent as long as the paper's, for these epochs and images."""
    from pretrain.recipes import registry

    papers = measure_ascent(registry.load_recipe("paper/seal"), PAPERS_IMAGES)
    return PAPERS_S * papers / measure_ascent(build_seal_recipe("seal", epochs, 0), images)


def measure_ascent(seal: Recipe, images: int) -> float:
    """Return the sum of the learning rates over one ascent."""
    from pretrain.recipes import schedules
    from pretrain.recipes.plan import TrainingClock

    steps = images // seal.batch_size
    ascent = int(0.25 * seal.plan.epochs)
    clocks = (TrainingClock(seal.plan, 1, epoch) for epoch in range(ascent))
    return sum(steps * seal.lr * schedules.lr_factor(seal, clock, steps) for clock in clocks)
