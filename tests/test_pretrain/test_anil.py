"""ANIL against a reference in which only the head takes the steps."""

from pathlib import Path

import torch
from support.episodic import Prepared, Weights, close, logits
from torch import Tensor, nn
from torch.nn import functional

from pretrain.training.episodes import TaskImages

HEAD = ("fc.weight", "fc.bias")


def by_hand(model: nn.Module, weights: Weights, task: TaskImages) -> Tensor:
    body = {name: weight for name, weight in weights.items() if name not in HEAD}
    head = {name: weights[name] for name in HEAD}
    for _ in range(2):
        said = logits(model, {**body, **head}, task.support)
        loss = functional.cross_entropy(said, task.support_labels)
        steps = torch.autograd.grad(loss, list(head.values()), create_graph=True)
        head = {n: w - 0.3 * g for (n, w), g in zip(head.items(), steps, strict=True)}
    return logits(model, {**body, **head}, task.query)


def test_the_gradient_is_the_one_through_the_steps_of_the_head(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "anil", "anil.steps=2", "anil.inner_lr=0.3")
    assert set(HEAD) < run.ctx.parameters.keys()
    assert close(run.gradients(), run.expected(by_hand))


def test_adapting_leaves_the_network_itself_alone(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "anil")
    run.ctx.model.eval()
    before = {n: t.clone() for n, t in run.ctx.model.state_dict().items()}
    run.learner.query_logits(run.ctx, run.tasks[0])
    assert all(torch.equal(t, before[n]) for n, t in run.ctx.model.state_dict().items())
