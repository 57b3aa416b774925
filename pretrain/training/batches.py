"""Training batches: shuffled images of a stage, in memory or streamed, augmented on the device.

Every random draw is keyed by (seed, position), so batch i does not depend on batch i - 1 and
resuming is exact.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core import seeding
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError, UsageError
from fsbench.data.augmentation import augment
from fsbench.data.source import SourceDataset, Split
from pretrain.recipes.plan import Stage, TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.streaming import RowStream, is_streamed


class Batch(NamedTuple):
    """Normalised images (B, 3, s, s) float32 and labels (B,) int64 on the run's device.

    share: their fraction of the step's images, below 1 if several processes share a step.
    """

    images: Tensor
    labels: Tensor
    share: float = 1.0


def load_split(split: Split, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the uint8 images and the labels of a split on the device; write to neither of them."""
    with warnings.catch_warnings(action="ignore"):  # images of a file are not writable
        images = torch.from_numpy(split.images)
    return images.to(device), torch.from_numpy(np.array(split.labels)).to(device)


class BatchLoader:
    """Loader `batches`: shuffled classification batches of the current stage."""

    unit = 1
    """Consecutive images that stay on one process; with episodes, those of a task."""

    def __init__(self, recipe: Recipe, source: SourceDataset, device: torch.device) -> None:
        self.recipe, self.device, self.classes = recipe, device, source.n_classes
        self.stream = RowStream(source.train, device) if is_streamed(source, device) else None
        self.home = torch.device("cpu") if self.stream else device
        self.images, self.labels = load_split(source.train, self.home)
        self._expected: tuple[object, ...] = ()
        self.normalise = InputNormalizer(source, device)
        self._order: tuple[tuple[seeding.Name, ...], Tensor] = ((), torch.empty(0))
        self.stages = [self._stage_images(stage) for stage in recipe.plan.stages]
        if min(len(images) for images in self.stages) < 2:
            raise DataError(
                f"a stage of recipe {recipe.name} holds fewer than 2 images of {source.name}",
                fix="give every stage a larger part of the source, or use a larger source",
            )

    def _stage_images(self, stage: Stage) -> NDArray[np.int64]:
        """Return the indices of the images that the stage trains on."""
        n = len(self.labels)
        order = seeding.permutations(1, n, *self.recipe.stream("stages"))[0]
        indices: NDArray[np.int64] = order[round(stage.start * n) : round(stage.stop * n)]
        return indices

    def epoch_size(self, stage: int) -> int:
        """Return the images per epoch, including those of the incomplete last batch."""
        available = len(self.stages[stage])
        return min(available, self.recipe.plan.epoch_images or available)

    def steps(self, stage: int) -> int:
        """Return the optimizer steps per epoch."""
        return max(1, self.epoch_size(stage) // self.recipe.batch_size)

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole plan."""
        plan = self.recipe.plan
        return plan.rounds * plan.epochs * sum(map(self.steps, range(len(plan.stages))))

    def batch(self, clock: TrainingClock, ranks: Ranks = ALONE) -> Batch:
        """Return the batch of this position, or this process's rows of exactly that batch."""
        self._read_ahead(clock, ranks)
        chosen = self._choose(clock)
        names = (*self.recipe.stream("augmentation"), *clock.names)
        return self._load(chosen, names, ranks.rows(len(chosen), self.unit))

    def _choose(self, clock: TrainingClock) -> Tensor:
        """Return the indices of the images of a step."""
        size = self.recipe.batch_size
        return self._epoch_order(clock)[clock.batch * size : (clock.batch + 1) * size]

    def _read_ahead(self, clock: TrainingClock, ranks: Ranks) -> None:
        """Let a streamed source read this process's rows of the rest of the epoch, once."""
        epoch = (*clock.names[:-1], ranks)
        if self.stream is None or self._expected == epoch:
            return
        self._expected = epoch
        first = replace(clock)
        later = range(self.steps(clock.stage) - clock.batch)
        steps = (replace(first, batch=first.batch + i, step=first.step + i) for i in later)
        chosen = map(self._choose, steps)
        self.stream.expect(c[ranks.rows(len(c), self.unit)].numpy() for c in chosen)

    def take(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the uint8 images and the labels of these rows on the device."""
        if self.stream is not None:
            return self.stream.take(rows)
        return self.images[rows], self.labels[rows]

    def passes(self, size: int, stage: int, names: tuple[seeding.Name, ...]) -> Iterator[Batch]:
        """Yield endless batches of `size` images, in shuffled passes over a stage.

        names: the random stream. The images are augmented as in training. A stage with fewer
        images gives all of them every time.
        """
        images = self.stages[stage]
        size = min(size, len(images))
        for number in count():
            order = images[seeding.permutations(1, len(images), *names, "order", number)[0]]
            for start in range(0, len(images) - size + 1, size):
                chosen = torch.from_numpy(order[start : start + size]).to(self.home)
                yield self._load(chosen, (*names, "augmentation", number, start))

    def _load(
        self, chosen: Tensor, names: tuple[seeding.Name, ...], rows: slice | None = None
    ) -> Batch:
        """Return these images, or some rows of them, augmented under the stream `names`."""
        rows = rows or slice(0, len(chosen))
        part = chosen[rows]
        recipe = self.recipe
        side = None if recipe.source_size is None else recipe.input_size
        images, labels = self.take(part)
        images = augment(images, recipe.augmentation, names, rows.start, len(chosen), side)
        return Batch(self.normalise(images), labels, len(part) / len(chosen))

    def _epoch_order(self, clock: TrainingClock) -> Tensor:
        """Return the shuffled image indices of this epoch; cached until the epoch changes."""
        names = (*self.recipe.stream("order"), clock.stage, clock.round, clock.epoch)
        if self._order[0] != names:
            images = self.stages[clock.stage]
            order = images[seeding.permutations(1, len(images), *names)[0]]
            size = self.epoch_size(clock.stage)
            self._order = names, torch.from_numpy(order[:size]).to(self.home)
        return self._order[1]


class InputNormalizer:
    """Conversion of uint8 images to float32, normalized by the source's mean and std."""

    layout = torch.contiguous_format  # set to that of the network

    def __init__(self, source: SourceDataset, device: torch.device) -> None:
        mean, std = (
            torch.tensor(v, dtype=torch.float64).view(1, 3, 1, 1) for v in (source.mean, source.std)
        )
        self.scale = (1 / (255 * std)).float().to(device)
        self.shift = (-mean / std).float().to(device)

    def __call__(self, images: Tensor) -> Tensor:
        values = images.to(torch.float32, memory_format=self.layout)
        # Spread over an image, or channels-last work runs over three channels at a time.
        scale, shift = (torch.empty_like(values[:1]).copy_(v) for v in (self.scale, self.shift))
        return values.mul_(scale).add_(shift)


class FullBatchLoader(BatchLoader):
    """Loader `full_batch`: gradient descent, every step on all images of the stage in one order.

    An epoch has plan.epoch_images / batch_size steps, or one; many steps per epoch write fewer logs
    and checkpoints. Raises UsageError if batch_size is not the number of images of every stage.
    """

    _cached: tuple[tuple[int, Ranks], Batch] | None = None

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
            return super().batch(clock, ranks)
        key = clock.stage, ranks
        if self._cached is None or self._cached[0] != key:
            self._cached = key, super().batch(clock, ranks)
        return self._cached[1]

    def _choose(self, clock: TrainingClock) -> Tensor:
        return torch.from_numpy(self.stages[clock.stage]).to(self.home)
