"""Meta-learners: methods that train on tasks, by the query loss after adapting to the support set.

A task has `way` classes of the source with `shots` support and `queries` query images each (loader
`episodes`). Its labels 0 .. way - 1 are drawn with the classes, so the network has a head of `way`
outputs. The exported run is the plain architecture with that head; `run:DIR` loads it as a backbone
like any other, without the head.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from fsbench.core.errors import UsageError
from fsbench.core.specs import EpisodeSpec
from pretrain.meta import l2l
from pretrain.meta.l2l import AdaptedCopy
from pretrain.method import Method
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe
from pretrain.training.batches import Batch
from pretrain.training.context import Context

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
    PILOT: ClassVar[Mapping[str, object]] = {
        **OUTER_LOOP,
        "batch_size": 200,
        "plan.epoch_images": 9_000,
    }
    TOY: ClassVar[Mapping[str, object]] = {**OUTER_LOOP, "batch_size": 100, "validate_every": 4}

    @property
    def task_images(self) -> int:
        return self.way * (self.shots + self.queries)

    def spec(self, seed: int) -> EpisodeSpec:
        """Return the spec by which tasks are drawn."""
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
        places = torch.arange(self.task_images, device=batch.labels.device).view(self.way, -1)
        parts = places[:, : self.shots].flatten(), places[:, self.shots :].flatten()
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
    """Return the recipe's meta-learner."""
    return next(method for method in recipe.methods if isinstance(method, MetaLearner))
