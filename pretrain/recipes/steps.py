"""A round's length in optimizer steps: `plan.round_steps` turned into whole epochs of equal length.

Schedules and methods count in epochs, so these stay what a round is made of. The number of epochs
is the recipe's while they fit into a pass over the stage's images, and larger for longer rounds;
`epoch_images` follows. A multiple of the steps of a pass gives epochs of whole passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsbench.core.errors import UsageError

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe


def fitted(recipe: Recipe, source: SourceDataset) -> Recipe:
    """The recipe with epochs and epoch_images that make a round take exactly `round_steps`.

    Without `round_steps` the recipe itself. Raises UsageError for fewer steps than epochs.
    """
    plan = recipe.plan
    if plan.round_steps is None:
        return recipe
    epochs = epochs_of(plan.round_steps, plan.epochs, longest(recipe, source))
    images = plan.round_steps // epochs * recipe.batch_size
    plan = plan.model_copy(update={"epochs": epochs, "epoch_images": images})
    return type(recipe).model_validate({**dict(recipe), "plan": plan})


def epochs_of(steps: int, least: int, longest: int) -> int:
    """The smallest number of epochs, `least` or more, of equal whole steps up to `longest`."""
    for epochs in range(least, steps + 1):
        if steps % epochs == 0 and steps // epochs <= longest:
            return epochs
    raise UsageError(
        f"plan.round_steps={steps} is fewer than a round has epochs: plan.epochs={least}",
        fix=f"give at least {least} steps, or --set plan.epochs={steps}",
    )


def longest(recipe: Recipe, source: SourceDataset) -> int:
    """Steps of an epoch that every stage can fill; gradient descent may take any number."""
    if recipe.loader == "full_batch":
        return recipe.plan.round_steps or 1
    n = len(source.train.labels)
    sizes = [round(stage.stop * n) - round(stage.start * n) for stage in recipe.plan.stages]
    images = min(*sizes, recipe.plan.epoch_images or n)
    return max(1, images // recipe.batch_size)
