"""Training batches: order, stages and augmentation drawn from named streams, images in memory.

Every draw is keyed by (seed, position), so batch i needs no batch i - 1 and resuming is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core import seeding
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError, UsageError
from fsbench.core.seeding import Name
from fsbench.data.augmentation import augment

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset, Split
    from pretrain.recipes.plan import Stage, TrainingClock
    from pretrain.recipes.recipe import Recipe


class Batch(NamedTuple):
    """Normalised images (B, 3, s, s) float32 and labels (B,) int64 on the run's device.

    share: which part of the step's images they are, below 1 where several ranks share a step.
    """

    images: Tensor
    labels: Tensor
    share: float = 1.0


def load_split(split: Split, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images uint8 and labels of a split on the device."""
    images = split.images if split.images.flags.writeable else np.array(split.images)
    return torch.from_numpy(images).to(device), torch.from_numpy(np.array(split.labels)).to(device)


class BatchLoader:
    """The recipe's loader `batches`: shuffled classification batches of the current stage."""

    unit = 1
    """Images that ranks never part: those of a task."""

    def __init__(self, recipe: Recipe, source: SourceDataset, device: torch.device) -> None:
        self.recipe, self.device, self.classes = recipe, device, source.n_classes
        self.images, self.labels = load_split(source.train, device)
        self.normalise = InputNormalizer(source, device, recipe.channels_last)
        self._order: tuple[tuple[seeding.Name, ...], Tensor] = ((), torch.empty(0))
        self.stages = [self._stage_images(stage) for stage in recipe.plan.stages]
        if min(len(images) for images in self.stages) < 2:
            raise DataError(
                f"a stage of recipe {recipe.name} holds fewer than 2 images of {source.name}",
                fix="give every stage a larger part of the source, or use a larger source",
            )

    def _stage_images(self, stage: Stage) -> NDArray[np.int64]:
        """Indices of the images that the stage trains on."""
        n = len(self.labels)
        order = seeding.permutations(1, n, *self.recipe.stream("stages"))[0]
        chosen: NDArray[np.int64] = order[round(stage.start * n) : round(stage.stop * n)]
        return chosen

    def epoch_size(self, stage: int) -> int:
        """Images drawn an epoch, before the incomplete last batch is left out."""
        available = len(self.stages[stage])
        return min(available, self.recipe.plan.epoch_images or available)

    def steps(self, stage: int) -> int:
        """Optimizer steps an epoch."""
        return max(1, self.epoch_size(stage) // self.recipe.batch_size)

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole plan."""
        plan = self.recipe.plan
        return plan.rounds * plan.epochs * sum(map(self.steps, range(len(plan.stages))))

    def batch(self, clock: TrainingClock, ranks: Ranks = ALONE) -> Batch:
        """The batch of this position, or this rank's rows of it: the same images, bit by bit."""
        size = self.recipe.batch_size
        chosen = self._epoch_order(clock)[clock.batch * size : (clock.batch + 1) * size]
        names = (*self.recipe.stream("augmentation"), *clock.names)
        return self._load(chosen, names, ranks.rows(len(chosen)))

    def passes(self, size: int, stage: int, names: tuple[seeding.Name, ...]) -> Iterator[Batch]:
        """Endless batches of `size` images, in shuffled passes over a stage under a stream's name.

        Augmented as in training. A stage with fewer images gives all of them every time.
        """
        images = self.stages[stage]
        size = min(size, len(images))
        for number in count():
            order = images[seeding.permutations(1, len(images), *names, "order", number)[0]]
            for start in range(0, len(images) - size + 1, size):
                chosen = torch.from_numpy(order[start : start + size]).to(self.device)
                yield self._load(chosen, (*names, "augmentation", number, start))

    def _load(
        self, chosen: Tensor, names: tuple[seeding.Name, ...], rows: slice | None = None
    ) -> Batch:
        """These images or some rows of them, augmented under the stream called `names`."""
        rows = rows or slice(0, len(chosen))
        part = chosen[rows]
        kind = self.recipe.augmentation
        images = augment(self.images[part], kind, names, first=rows.start, of=len(chosen))
        return Batch(self.normalise(images), self.labels[part], len(part) / len(chosen))

    def _epoch_order(self, clock: TrainingClock) -> Tensor:
        """Image indices of this epoch, shuffled; kept until the epoch changes."""
        names = (*self.recipe.stream("order"), clock.stage, clock.round, clock.epoch)
        if self._order[0] != names:
            images = self.stages[clock.stage]
            order = images[seeding.permutations(1, len(images), *names)[0]]
            size = self.epoch_size(clock.stage)
            self._order = names, torch.from_numpy(order[:size]).to(self.device)
        return self._order[1]


class InputNormalizer:
    """uint8 images to float32 with the source's mean and std, in the wanted memory format."""

    def __init__(self, source: SourceDataset, device: torch.device, channels_last: bool) -> None:
        mean, std = (
            torch.tensor(v, dtype=torch.float64).view(1, 3, 1, 1) for v in (source.mean, source.std)
        )
        self.scale = (1 / (255 * std)).float().to(device)
        self.shift = (-mean / std).float().to(device)
        self.format = torch.channels_last if channels_last else torch.contiguous_format

    def __call__(self, images: Tensor) -> Tensor:
        values = images.to(torch.float32, memory_format=self.format)
        return values.mul_(self.scale).add_(self.shift)


if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.plan import TrainingClock
    from pretrain.recipes.recipe import Recipe


class FullBatchLoader(BatchLoader):
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

    def batch(self, clock: TrainingClock, ranks: Ranks = ALONE) -> Batch:
        if self.recipe.augmentation != "none":
            return self._all(clock, ranks, *self.recipe.stream("augmentation"), *clock.names)
        key = clock.stage, ranks
        if self._held is None or self._held[0] != key:
            self._held = key, self._all(clock, ranks)
        return self._held[1]

    def _all(self, clock: TrainingClock, ranks: Ranks, *augmentation: Name) -> Batch:
        """This rank's images of the stage, augmented by the stream of this name, if any."""
        chosen = torch.from_numpy(self.stages[clock.stage]).to(self.device)
        return self._load(chosen, augmentation, ranks.rows(len(chosen)))
