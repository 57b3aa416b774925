"""The recipe's loader `episodes`: every batch is a number of few-shot tasks of the source.

Tasks are drawn by the frozen sampler of the benchmark (fsbench/data/episodes.py), under the names
of the source, its split and the recipe's seed: task i needs no other one, resuming is exact, and
all meta-learners of one seed with tasks of one size see the same ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError
from fsbench.data.episodes import EpisodeSampler
from pretrain.meta.learner import Episodic, learner_of
from pretrain.training.batches import Batch, Batches

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.plan import Clock
    from pretrain.recipes.recipe import Recipe

Indices = NDArray[np.int64]


class Tasks:
    """Tasks of a meta-learner from some images of a split.

    name: what they are drawn under; images: indices; labels: of the whole split. Raises DataError
    when a task could not be drawn from them.
    """

    def __init__(
        self, learner: Episodic, seed: int, name: str, images: Indices, labels: Indices
    ) -> None:
        ranked = np.sort(images)
        classes = np.unique(labels[ranked])
        self.by_class = {int(c): ranked[labels[ranked] == c] for c in classes}
        counts = {c: len(found) for c, found in self.by_class.items()}
        try:
            self.sampler = EpisodeSampler(learner.spec(seed), name, counts)
        except DataError as error:
            fields = " or ".join(f"{learner.name}.{f}" for f in ("way", "shots", "queries"))
            fix = f"lower {fields} by --set, or use a larger source"
            raise DataError(error.message, fix=fix) from error
        size = learner.shots + learner.queries
        self.labels = torch.arange(learner.way).repeat_interleave(size)

    def images(self, i: int) -> Indices:
        """Image indices of task i, class by class, the support of each before its queries."""
        return np.concatenate(self.sampler.episode(i).images(self.by_class), axis=1).ravel()


class Episodes(Batches):
    """Batches of batch_size / (way x (shots + queries)) tasks; labels are those of the tasks."""

    def __init__(self, recipe: Recipe, source: SourceDataset, device: torch.device) -> None:
        super().__init__(recipe, source, device)
        learner = learner_of(recipe)
        self.classes = learner.way
        self.unit = learner.task_images
        self.count = recipe.batch_size // self.unit
        self.tasks = [
            Tasks(learner, recipe.seed, f"{source.name}/train/{stage}", images, source.train.labels)
            for stage, images in enumerate(self.stages)
        ]

    def batch(self, clock: Clock, ranks: Ranks = ALONE) -> Batch:
        tasks, first = self.tasks[clock.stage], clock.step * self.count
        drawn = [tasks.images(i) for i in range(first, first + self.count)]
        chosen = torch.from_numpy(np.concatenate(drawn)).to(self.device)
        rows = ranks.rows(len(chosen), self.unit)
        loaded = self._load(chosen, (*self.recipe.stream("augmentation"), *clock.names), rows)
        labels = tasks.labels.repeat(self.count)[rows].to(self.device)
        return Batch(loaded.images, labels, loaded.share)
