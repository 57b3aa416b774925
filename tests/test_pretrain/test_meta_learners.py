"""Meta-learners: gradients by references written out, Meta-SGD's rates, prototypes by hand."""

import math
from pathlib import Path

import pytest
import torch
from support.episodic import Answers, Prepared, Weights, close, logits
from support.pretrain import equal, lines, train, weights
from torch import Tensor, nn
from torch.nn import functional

from pretrain.methods import protonet
from pretrain.training.batches import Batch
from pretrain.training.episodes import TaskImages

HEAD = {"fc.weight", "fc.bias"}
RATE = "rate."


def adapt(
    steps: int, second_order: bool = True, only: set[str] | None = None, rates: bool = False
) -> Answers:
    """Return a reference that takes steps on the support and answers for the queries.

    only: the weights that take the steps; rates: trained step sizes in place of 0.3.
    """

    def query_logits(model: nn.Module, weights: Weights, task: TaskImages) -> Tensor:
        adapted = {n: w for n, w in weights.items() if not n.startswith(RATE)}
        moved = [n for n in adapted if only is None or n in only]
        for _ in range(steps):
            loss = functional.cross_entropy(
                logits(model, adapted, task.support), task.support_labels
            )
            gradients = torch.autograd.grad(
                loss, [adapted[n] for n in moved], create_graph=second_order
            )
            for n, g in zip(moved, gradients, strict=True):
                adapted[n] = adapted[n] - (weights[RATE + n] if rates else 0.3) * g
        return logits(model, adapted, task.query)

    return query_logits


@pytest.mark.parametrize("first_order", [False, True])
def test_mamls_gradient_is_the_one_through_the_steps_on_the_support(
    first_order: bool, tmp_path: Path
) -> None:
    fields = ("maml.steps=2", "maml.inner_lr=0.3", f"maml.first_order={first_order}")
    run = Prepared(tmp_path, "maml", *fields)
    theirs = {order: run.expected(adapt(2, order)) for order in (False, True)}
    assert not close(theirs[False], theirs[True])
    assert close(run.gradients(), theirs[not first_order])


def test_anils_gradient_is_the_one_through_the_steps_of_the_head(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "anil", "anil.steps=2", "anil.inner_lr=0.3")
    assert run.ctx.parameters.keys() > HEAD
    run.ctx.model.eval()
    before = {n: t.clone() for n, t in run.ctx.model.state_dict().items()}
    run.learner.query_logits(run.ctx, run.tasks[0])
    assert equal(run.ctx.model.state_dict(), before)
    run.ctx.model.train()
    assert close(run.gradients(), run.expected(adapt(2, only=HEAD)))


def test_the_head_tells_the_classes_of_a_task_apart(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "maml", "maml.way=3", "maml.queries=2", "batch_size=9")
    assert run.ctx.model.get_submodule(run.ctx.roles.head).out_features == 3
    assert run.learner.query_logits(run.ctx, run.tasks[0]).shape == (6, 3)


def test_metasgds_weights_and_rates_get_the_gradient_through_the_step(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "metasgd", "metasgd.inner_lr=0.3")
    rates = {n: p for n, p in run.ctx.parameters.items() if n.startswith(RATE)}
    assert all((rate == 0.3).all() for rate in rates.values())
    with torch.no_grad():
        for number, rate in enumerate(rates.values()):
            rate.mul_(1 + 0.1 * number)
    copies = {name: rate.detach().clone().requires_grad_() for name, rate in rates.items()}
    ours, theirs = run.gradients(), run.expected(adapt(1, rates=True), copies)
    assert close(ours, theirs)
    assert max(ours[name].abs().max() for name in rates) > 1e-3


def test_rates_are_trained_by_the_optimizer_of_the_run_without_decay(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "metasgd", "weight_decay=0.5", "metasgd.inner_lr=0.3")
    groups = run.ctx.optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [0.5, 0.0]
    rate = run.ctx.memory["rate.fc.weight"]
    assert any(rate is parameter for parameter in groups[1]["params"])
    run.made._step(2)
    moved = (run.ctx.memories["metasgd"]["rate.fc.weight"].detach() - 0.3).abs()
    assert moved.max() == pytest.approx(run.made.lr, rel=0.01)  # Adam's first step


def test_protonets_loss_is_that_of_distances_to_the_mean_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prototypes (1, 0) and (0, 1); queries (.5, 0), (1, 1): distances .25, 1.25, 1, 1."""
    run = Prepared(tmp_path, "protonet", "protonet.shots=2", "batch_size=6")
    monkeypatch.setattr(protonet, "head_inputs", lambda ctx, images: images.flatten(1))
    features = torch.tensor([[0.0, 0], [2, 0], [0.5, 0], [0, 3], [0, -1], [1, 1]])
    batch = Batch(features.view(6, 2, 1, 1), torch.tensor([0, 0, 0, 1, 1, 1]))
    (task,) = run.learner.tasks(batch)
    answers = run.learner.query_logits(run.ctx, task)
    assert answers.flatten().tolist() == pytest.approx([-0.25, -1.25, -1.0, -1.0])
    expected = (math.log(1 + math.exp(-1)) + math.log(2)) / 2
    assert float(run.learner.training_step(run.ctx, batch)) == pytest.approx(expected)


def test_protonets_features_are_what_reaches_the_head_before_dropout(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "protonet", "dropout=0.9")
    run.ctx.model.eval()
    features = protonet.head_inputs(run.ctx, run.batch.images)
    assert features.shape == (8, 64)
    head = run.ctx.model.get_submodule(run.ctx.roles.head)
    assert torch.allclose(head(features), run.ctx.model(run.batch.images))
    run.ctx.model.train()
    assert (protonet.head_inputs(run.ctx, run.batch.images) > 0).float().mean() > 0.3
    assert len(head._forward_pre_hooks) == 1


def test_protonet_learns_and_leaves_the_head_as_it_was_drawn(tmp_path: Path) -> None:
    overrides = ("plan.epochs=8", "plan.epoch_images=40", "lr=0.01", "augmentation=none")
    drawn = Prepared(tmp_path / "start", "protonet").ctx.model.state_dict()["fc.weight"]
    run = train(tmp_path / "run", "protonet", *overrides)
    losses = [line["train_loss"] for line in lines(run)]
    assert sum(losses[-4:]) < 0.6 * sum(losses[:4])
    assert torch.equal(weights(run)["fc.weight"], drawn)
