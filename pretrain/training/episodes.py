"""Episodic training: meta-learners, the tasks that they train on, and validation on new tasks.

A task has `way` classes of the source with `shots` support and `queries` query images each; a
meta-learner trains on the query loss after adapting to the support set. Labels 0 .. way - 1 are
drawn with the classes, so the network has a head of `way` outputs. The exported run is the plain
architecture with that head; `run:DIR` loads it as a backbone like any other, without the head.

The benchmark's episode sampler (fsbench/data/episodes.py) draws the tasks under the names of the
source, its split and the recipe's seed. Task i does not depend on another one, so resuming is
exact, and all meta-learners of one seed with tasks of one size train on the same tasks.

Validation tasks contain images of the source's validation split, of the classes of training; they
are the same for every seed. The result is not a classification accuracy over all classes: a run
records it as `episodic_accuracy`, and its `source_accuracy` is null. The network adapts in eval
mode, with the running statistics that the exported run keeps and every protocol uses, so no
prediction depends on other queries. Published figures of MAML do depend on them, and without them
it falls to chance (toy/maml: 24 % against 38 %); `val_norm=batch` measures as they do.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError, UsageError
from fsbench.core.specs import EpisodeSpec
from fsbench.data.augmentation import copy_async
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.source import SourceDataset
from pretrain.method import Method
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe
from pretrain.training import l2l
from pretrain.training.batches import Batch, BatchLoader
from pretrain.training.context import Context
from pretrain.training.l2l import AdaptedCopy
from pretrain.training.validation import Validation, autocast, eval_mode, use_batch_statistics

OUTER_LOOP: Mapping[str, object] = {
    "loader": "episodes",
    "optimizer": "adam",
    "lr": 3e-3,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "precision": "fp32",
}
"""All four papers train with Adam on plain cross-entropy, at 0.001 and far longer."""


class TaskImages(NamedTuple):
    """Support (way * shots, 3, s, s) and query images (way * queries, 3, s, s) with labels."""

    support: Tensor
    support_labels: Tensor
    query: Tensor
    query_labels: Tensor


class MetaLearner(Method):
    """Base of the meta-learners.

    way: classes per task. shots, queries: images per class. val_episodes: validation tasks.
    val_norm: statistics of batch norm in validation, the running ones or those of the batch. A
    step's images are whole tasks: batch_size = tasks x way x (shots + queries).
    """

    way: int = Field(5, ge=2)
    shots: int = Field(5, ge=1)
    queries: int = Field(15, ge=1)
    val_episodes: int = Field(100, ge=1)
    val_norm: Literal["running", "batch"] = "running"

    RANK: ClassVar = ActingOrder.STEP
    NEUTRAL: ClassVar[Neutral] = "it trains on tasks, by another loss, with another head"
    EVERY: ClassVar = OUTER_LOOP
    FULL: ClassVar = {"batch_size": 100}
    PILOT: ClassVar = {"batch_size": 200, "plan.epoch_images": 9_000}
    TOY: ClassVar = {"batch_size": 100, "validate_every": 4}

    @property
    def task_images(self) -> int:
        return self.way * (self.shots + self.queries)

    def spec(self, seed: int) -> EpisodeSpec:
        return EpisodeSpec(n_way=self.way, k_shot=self.shots, n_query=self.queries, seed=seed)

    def check(self, recipe: Recipe) -> None:
        if recipe.loader != "episodes":
            raise UsageError(
                f"{self.name} trains on tasks, not on loader={recipe.loader}",
                fix=f"start from toy/{self.name} or pilot/{self.name}, or --set loader=episodes",
            )
        whole = max(1, recipe.batch_size // self.task_images) * self.task_images
        if recipe.batch_size != whole:
            raise UsageError(
                f"batch_size={recipe.batch_size} is no number of whole tasks: a task of {self.name}"
                f" has {self.way} x ({self.shots} + {self.queries}) = {self.task_images} images",
                fix=f"--set batch_size={whole}",
            )
        if recipe.sync_bn:
            raise UsageError(
                f"{self.name} normalises every task by its own images, sync_bn=true would mix them",
                fix="--set sync_bn=false",
            )
        if recipe.compile:
            raise UsageError(
                f"{self.name} adapts copies of the network, which compile=true does not reach",
                fix="--set compile=false",
            )

    def require_installed(self) -> None:
        l2l.import_learn2learn()

    def query_logits(self, ctx: Context, task: TaskImages) -> Tensor:
        """Return the logits (way * queries, way) of a task's queries, adapted to its support."""
        raise NotImplementedError

    def training_step(self, ctx: Context, batch: Batch) -> Tensor:
        losses = [
            task_loss(ctx, self.query_logits(ctx, task), task.query_labels)
            for task in self.tasks(batch)
        ]
        return torch.stack(losses).mean()

    def tasks(self, batch: Batch) -> Iterator[TaskImages]:
        """Yield the batch's tasks; images are ordered by class, the support of each first."""
        positions = torch.arange(self.task_images, device=batch.labels.device).view(self.way, -1)
        parts = positions[:, : self.shots].flatten(), positions[:, self.shots :].flatten()
        for first in range(0, len(batch.labels), self.task_images):
            support, query = (first + part for part in parts)
            yield TaskImages(
                batch.images[support],
                batch.labels[support],
                batch.images[query],
                batch.labels[query],
            )


class InnerLoop(MetaLearner):
    """Meta-learner that adapts by gradient steps on the support set.

    inner_lr, steps: of the adaptation; the defaults are those of MAML's miniImageNet experiment
    (Finn et al. 2017, appendix A.1). first_order: without second derivatives.
    """

    inner_lr: float = Field(0.01, gt=0)
    steps: int = Field(5, ge=1)
    first_order: bool = False

    def adapted(
        self, ctx: Context, learner: AdaptedCopy, inputs: Tensor, labels: Tensor
    ) -> AdaptedCopy:
        """Return the learner after its steps on the support."""
        for _ in range(self.steps):
            learner.adapt(task_loss(ctx, learner(inputs), labels))
        return learner

    def differentiates_once(self, ctx: Context) -> bool:
        """Return whether the steps are not differentiated again: by setting, and in validation."""
        return self.first_order or not ctx.model.training


def task_loss(ctx: Context, logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy with the recipe's label smoothing, in float32."""
    smoothing = ctx.recipe.label_smoothing
    return functional.cross_entropy(logits.float(), labels, label_smoothing=smoothing)


def head_inputs(ctx: Context, images: Tensor) -> Tensor:
    """Return the inputs of the head, before dropout: the features (B, D) of a backbone."""
    features: list[Tensor] = []
    hook = ctx.model.get_submodule(ctx.roles.head).register_forward_pre_hook(
        lambda head, inputs: features.append(inputs[0]), prepend=True
    )
    try:
        ctx.model(images)
    finally:
        hook.remove()
    return features[0]


def meta_learner_of(recipe: Recipe) -> MetaLearner:
    return next(method for method in recipe.methods if isinstance(method, MetaLearner))


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
        self.task_labels = self.tasks[0].labels.repeat(self.count).to(device)

    def batch(self, clock: TrainingClock, ranks: Ranks = ALONE) -> Batch:
        labels = self.task_labels[ranks.rows(len(self.task_labels), self.unit)]
        return super().batch(clock, ranks)._replace(labels=labels)

    def _choose(self, clock: TrainingClock) -> Tensor:
        tasks, first = self.tasks[clock.stage], clock.step * self.count
        drawn = [tasks.images(i) for i in range(first, first + self.count)]
        return copy_async(torch.from_numpy(np.concatenate(drawn)), self.home)


class EpisodicValidation(Validation):
    """Accuracy on tasks 0 .. val_episodes - 1 of the validation split; processes share them."""

    column = "episodic_accuracy"

    def __init__(self, loader: BatchLoader, source: SourceDataset, ranks: Ranks = ALONE) -> None:
        super().__init__(loader, source, ranks)
        self.learner = meta_learner_of(loader.recipe)
        classes, name = self.labels.cpu().numpy(), f"{source.name}/val"
        self.tasks = EpisodeSource(self.learner, 0, name, np.arange(len(classes)), classes)
        self.queries = self.learner.way * self.learner.queries

    def measure(self, ctx: Context) -> float:
        """Return the mean accuracy on the queries of a task."""
        ctx.acting = self.learner.name
        with eval_mode(ctx.model), autocast(self.recipe, self.device), ExitStack() as stack:
            if self.learner.val_norm == "batch":
                stack.enter_context(use_batch_statistics(ctx.model, everywhere=True))
            tasks = range(self.ranks.rank, self.learner.val_episodes, self.ranks.size)
            correct = sum(int(n) for n in [self._count_correct(ctx, i) for i in tasks])
        total = sum(self.ranks.collect(correct, self.device))
        return total / (self.learner.val_episodes * self.queries)

    def _count_correct(self, ctx: Context, i: int) -> torch.Tensor:
        """Return the number of correctly classified queries of task i."""
        indices = torch.from_numpy(self.tasks.images(i)).to(self.images.device)
        images = self.normalise(self.images[indices].to(self.device))
        batch = Batch(images, self.tasks.labels.to(self.device))
        (task,) = self.learner.tasks(batch)
        logits = self.learner.query_logits(ctx, task).detach()
        return (logits.argmax(dim=1) == task.query_labels).sum()


def describe_episodes(recipe: Recipe) -> dict[str, Any]:
    """Return the tasks on which `episodic_accuracy` of this recipe's runs is measured."""
    learner = meta_learner_of(recipe)
    validation = {"episodes": learner.val_episodes, "split": "val", "batch_norm": learner.val_norm}
    return learner.model_dump(include={"way", "shots", "queries"}) | validation
