"""How well a meta-learner answers new tasks: the validation of a run with loader `episodes`.

Tasks hold images of the source's validation split, whose classes the run was trained on: the same
tasks for every seed. This is no accuracy of classification over all classes: a run has it as
`episodic_accuracy`, and its `source_accuracy` is null.

The network adapts in eval mode, by the running statistics that the exported run keeps and every
protocol uses: no answer depends on other queries. Published figures of MAML do depend on them, and
without them it falls to chance (toy/maml: 24 % against 38 %); `val_norm=batch` measures as they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from fsbench.core.distributed import ALONE, Ranks
from pretrain.meta.episodes import Tasks
from pretrain.meta.learner import learner_of
from pretrain.training.batches import Batch, Normalise, in_memory
from pretrain.training.observe import batch_statistics
from pretrain.training.validation import autocast, evaluating

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context


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
        self.recipe, self.device, self.learner = recipe, device, learner_of(recipe)
        self.ranks = ranks
        self.images, labels = in_memory(source.val, device)
        self.normalise = Normalise(source, device, recipe.channels_last)
        every = labels.cpu().numpy()
        name = f"{source.name}/val"
        self.tasks = Tasks(self.learner, 0, name, np.arange(len(every)), every)
        self.queries = self.learner.way * self.learner.queries

    def measure(self, ctx: Context) -> float:
        """Mean fraction of right answers to the queries of a task."""
        ctx.acting = self.learner.name
        with evaluating(ctx.model), self._norm(ctx), autocast(self.recipe, self.device):
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
            with batch_statistics(ctx.model):
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


def measured_on(recipe: Recipe) -> dict[str, Any]:
    """What `episodic_accuracy` of this recipe's runs is measured on."""
    learner = learner_of(recipe)
    return {
        "way": learner.way,
        "shots": learner.shots,
        "queries": learner.queries,
        "episodes": learner.val_episodes,
        "split": "val",
        "batch_norm": learner.val_norm,
    }
