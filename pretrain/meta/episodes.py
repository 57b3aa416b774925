"""Episodic training and validation: the loader `episodes` and the accuracy on new episodes.

Every batch is a number of few-shot tasks of the source, drawn by the benchmark's episode sampler
(fsbench/data/episodes.py) under the names of the source, its split and the recipe's seed. Task i
does not depend on another one, so resuming is exact, and all meta-learners of one seed with tasks
of one size train on the same tasks.

Validation tasks contain images of the source's validation split, of the classes of training; they
are the same for every seed. The result is not a classification accuracy over all classes: a run
records it as `episodic_accuracy`, and its `source_accuracy` is null. The network adapts in eval
mode, with the running statistics that the exported run keeps and every protocol uses, so no
prediction depends on other queries. Published figures of MAML do depend on them, and without them
it falls to chance (toy/maml: 24 % against 38 %); `val_norm=batch` measures as they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.modules.batchnorm import _BatchNorm

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.source import SourceDataset
from pretrain.meta.learner import MetaLearner, meta_learner_of
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import Batch, BatchLoader
from pretrain.training.context import Context
from pretrain.training.validation import Validation, autocast, eval_mode, use_batch_statistics

Indices = NDArray[np.int64]


class EpisodeSource:
    """Tasks of a meta-learner from some images of a split.

    name: names the random stream. images: indices. labels: of the whole split. Raises DataError if
    the images are too few for a task.
    """

    def __init__(
        self, learner: MetaLearner, seed: int, name: str, images: Indices, labels: Indices
    ) -> None:
        ranked = np.sort(images)
        classes = np.unique(labels[ranked])
        self.by_class = {int(c): ranked[labels[ranked] == c] for c in classes}
        counts = {c: len(indices) for c, indices in self.by_class.items()}
        try:
            self.sampler = EpisodeSampler(learner.spec(seed), name, counts)
        except DataError as error:
            fields = " or ".join(f"{learner.name}.{f}" for f in ("way", "shots", "queries"))
            fix = f"lower {fields} by --set, or use a larger source"
            raise DataError(error.message, fix=fix) from error
        size = learner.shots + learner.queries
        self.labels = torch.arange(learner.way).repeat_interleave(size)

    def images(self, i: int) -> Indices:
        """Return the image indices of task i by class, the support of each before its queries."""
        return np.concatenate(self.sampler.episode(i).images(self.by_class), axis=1).ravel()


class EpisodeLoader(BatchLoader):
    """Loader `episodes`: batch_size / task_images tasks per batch, with their labels."""

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


class EpisodicValidation(Validation):
    """Accuracy on tasks 0 .. val_episodes - 1 of the validation split; processes share them."""

    column = "episodic_accuracy"

    def __init__(
        self, recipe: Recipe, source: SourceDataset, device: torch.device, ranks: Ranks = ALONE
    ) -> None:
        super().__init__(recipe, source, device, ranks)
        self.learner = meta_learner_of(recipe)
        classes, name = self.labels.cpu().numpy(), f"{source.name}/val"
        self.tasks = EpisodeSource(self.learner, 0, name, np.arange(len(classes)), classes)
        self.queries = self.learner.way * self.learner.queries

    def measure(self, ctx: Context) -> float:
        """Return the mean accuracy on the queries of a task."""
        ctx.acting = self.learner.name
        with eval_mode(ctx.model), self._norm(ctx), autocast(self.recipe, self.device):
            tasks = range(self.ranks.rank, self.learner.val_episodes, self.ranks.size)
            correct = sum(int(n) for n in [self._count_correct(ctx, i) for i in tasks])
        total = self.ranks.total(correct, self.device)
        return total / (self.learner.val_episodes * self.queries)

    @contextmanager
    def _norm(self, ctx: Context) -> Iterator[None]:
        """Use batch statistics in batch norm for the block, if the method's val_norm says so."""
        if self.learner.val_norm == "batch":
            for norm in (m for m in ctx.model.modules() if isinstance(m, _BatchNorm)):
                norm.train()
            with use_batch_statistics(ctx.model):
                yield
        else:
            yield

    def _count_correct(self, ctx: Context, i: int) -> torch.Tensor:
        """Return the number of correctly classified queries of task i."""
        indices = torch.from_numpy(self.tasks.images(i)).to(self.device)
        batch = Batch(self.normalise(self.images[indices]), self.tasks.labels.to(self.device))
        (task,) = self.learner.tasks(batch)
        logits = self.learner.query_logits(ctx, task).detach()
        return (logits.argmax(dim=1) == task.query_labels).sum()


def describe_episodes(recipe: Recipe) -> dict[str, Any]:
    """Return the tasks on which `episodic_accuracy` of this recipe's runs is measured."""
    learner = meta_learner_of(recipe)
    return {
        "way": learner.way,
        "shots": learner.shots,
        "queries": learner.queries,
        "episodes": learner.val_episodes,
        "split": "val",
        "batch_norm": learner.val_norm,
    }
