"""The recipe's loader `episodes`: every batch is a number of few-shot tasks of the source.

Tasks are drawn by the frozen sampler of the benchmark (fsbench/data/episodes.py), under the names
of the source, its split and the recipe's seed: task i needs no other one, resuming is exact, and
all meta-learners of one seed with tasks of one size see the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.modules.batchnorm import _BatchNorm

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError
from fsbench.data.episodes import EpisodeSampler
from pretrain.meta.learner import MetaLearner, meta_learner_of
from pretrain.training.batches import Batch, BatchLoader, InputNormalizer, load_split
from pretrain.training.validation import autocast, eval_mode, use_batch_statistics

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.plan import TrainingClock
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context


Indices = NDArray[np.int64]


class EpisodeSource:
    """Tasks of a meta-learner from some images of a split.

    name: what they are drawn under; images: indices; labels: of the whole split. Raises DataError
    when a task could not be drawn from them.
    """

    def __init__(
        self, learner: MetaLearner, seed: int, name: str, images: Indices, labels: Indices
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


class EpisodeLoader(BatchLoader):
    """Batches of batch_size / (way x (shots + queries)) tasks; labels are those of the tasks."""

    def __init__(self, recipe: Recipe, source: SourceDataset, device: torch.device) -> None:
        super().__init__(recipe, source, device)
        learner = meta_learner_of(recipe)
        self.classes = learner.way
        self.unit = learner.task_images
        self.count = recipe.batch_size // self.unit
        self.tasks = [
            EpisodeSource(
                learner, recipe.seed, f"{source.name}/train/{stage}", images, source.train.labels
            )
            for stage, images in enumerate(self.stages)
        ]

    def batch(self, clock: TrainingClock, ranks: Ranks = ALONE) -> Batch:
        tasks, first = self.tasks[clock.stage], clock.step * self.count
        drawn = [tasks.images(i) for i in range(first, first + self.count)]
        chosen = torch.from_numpy(np.concatenate(drawn)).to(self.device)
        rows = ranks.rows(len(chosen), self.unit)
        loaded = self._load(chosen, (*self.recipe.stream("augmentation"), *clock.names), rows)
        labels = tasks.labels.repeat(self.count)[rows].to(self.device)
        return Batch(loaded.images, labels, loaded.share)


class EpisodicValidation:
    """Tasks 0 .. val_episodes - 1 of the validation split; ranks take turns at them."""

    column = "episodic_accuracy"

    def __init__(
        self,
        recipe: Recipe,
        source: SourceDataset,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        self.recipe, self.device, self.learner = recipe, device, meta_learner_of(recipe)
        self.ranks = ranks
        self.images, labels = load_split(source.val, device)
        self.normalise = InputNormalizer(source, device, recipe.channels_last)
        every = labels.cpu().numpy()
        name = f"{source.name}/val"
        self.tasks = EpisodeSource(self.learner, 0, name, np.arange(len(every)), every)
        self.queries = self.learner.way * self.learner.queries

    def measure(self, ctx: Context) -> float:
        """Mean fraction of right answers to the queries of a task."""
        ctx.acting = self.learner.name
        with eval_mode(ctx.model), self._norm(ctx), autocast(self.recipe, self.device):
            mine = range(self.ranks.rank, self.learner.val_episodes, self.ranks.size)
            right = sum(int(r) for r in [self._right(ctx, i) for i in mine])
        total = self.ranks.total(right, self.device)
        return total / (self.learner.val_episodes * self.queries)

    @contextmanager
    def _norm(self, ctx: Context) -> Iterator[None]:
        """Batch norm by the images of each pass inside, where the method wants that."""
        if self.learner.val_norm == "batch":
            for norm in (m for m in ctx.model.modules() if isinstance(m, _BatchNorm)):
                norm.train()
            with use_batch_statistics(ctx.model):
                yield
        else:
            yield

    def _right(self, ctx: Context, i: int) -> torch.Tensor:
        """Right answers to task i."""
        chosen = torch.from_numpy(self.tasks.images(i)).to(self.device)
        batch = Batch(self.normalise(self.images[chosen]), self.tasks.labels.to(self.device))
        (task,) = self.learner.tasks(batch)
        answers = self.learner.answers(ctx, task).detach()
        return (answers.argmax(dim=1) == task.query_labels).sum()


def describe_episodes(recipe: Recipe) -> dict[str, Any]:
    """What `episodic_accuracy` of this recipe's runs is measured on."""
    learner = meta_learner_of(recipe)
    return {
        "way": learner.way,
        "shots": learner.shots,
        "queries": learner.queries,
        "episodes": learner.val_episodes,
        "split": "val",
        "batch_norm": learner.val_norm,
    }
