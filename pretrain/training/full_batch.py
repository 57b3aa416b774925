"""Gradient descent: every step sees all images of the stage, in one order.

Many steps make an epoch here, which spares their logs and checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import UsageError
from fsbench.core.seeding import Name
from pretrain.training.batches import Batch, Batches

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.plan import Clock
    from pretrain.recipes.recipe import Recipe


class FullBatch(Batches):
    """The recipe's loader `full_batch`: plan.epoch_images / batch_size steps an epoch, or one.

    Raises UsageError when batch_size is not the number of images of every stage.
    """

    _held: tuple[tuple[int, Ranks], Batch] | None = None

    def __init__(self, recipe: Recipe, source: SourceDataset, device: torch.device) -> None:
        super().__init__(recipe, source, device)
        sizes = sorted({len(images) for images in self.stages})
        if sizes != [recipe.batch_size]:
            raise UsageError(
                f"loader=full_batch takes all images of a stage, {', '.join(map(str, sizes))} here;"
                f" batch_size is {recipe.batch_size}",
                fix=f"use one stage and --set batch_size={sizes[-1]}, or --set loader=batches",
            )

    def epoch_size(self, stage: int) -> int:
        return self.recipe.plan.epoch_images or len(self.stages[stage])

    def batch(self, clock: Clock, ranks: Ranks = ALONE) -> Batch:
        if self.recipe.augmentation != "none":
            return self._all(clock, ranks, *self.recipe.stream("augmentation"), *clock.names)
        key = clock.stage, ranks
        if self._held is None or self._held[0] != key:
            self._held = key, self._all(clock, ranks)
        return self._held[1]

    def _all(self, clock: Clock, ranks: Ranks, *augmentation: Name) -> Batch:
        """This rank's images of the stage, augmented by the stream of this name, if any."""
        chosen = torch.from_numpy(self.stages[clock.stage]).to(self.device)
        return self._load(chosen, augmentation, ranks.rows(len(chosen)))
