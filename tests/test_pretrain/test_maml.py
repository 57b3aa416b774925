"""MAML against a double backward pass written by hand."""

from pathlib import Path

import pytest
import torch
from support.episodic import Answers, Prepared, Weights, close, logits
from torch import Tensor, nn
from torch.nn import functional

from pretrain.training.episodes import TaskImages

SETTINGS = ("maml.steps=2", "maml.inner_lr=0.3")


def by_hand(second_order: bool) -> Answers:
    def query_logits(model: nn.Module, weights: Weights, task: TaskImages) -> Tensor:
        for _ in range(2):
            loss = functional.cross_entropy(
                logits(model, weights, task.support), task.support_labels
            )
            steps = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order)
            weights = {n: w - 0.3 * g for (n, w), g in zip(weights.items(), steps, strict=True)}
        return logits(model, weights, task.query)

    return query_logits


@pytest.mark.parametrize("first_order", [False, True])
def test_the_gradient_is_the_one_through_the_steps_on_the_support(
    first_order: bool, tmp_path: Path
) -> None:
    run = Prepared(tmp_path, "maml", *SETTINGS, f"maml.first_order={first_order}")
    theirs = {order: run.expected(by_hand(order)) for order in (False, True)}
    assert not close(theirs[False], theirs[True])
    assert close(run.gradients(), theirs[not first_order])


def test_the_head_tells_the_classes_of_a_task_apart(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "maml", "maml.way=3", "maml.queries=2", "batch_size=9")
    assert run.ctx.model.get_submodule(run.ctx.roles.head).out_features == 3
    assert run.learner.query_logits(run.ctx, run.tasks[0]).shape == (6, 3)
