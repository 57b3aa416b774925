"""Meta-SGD: its step sizes are trained, checkpointed, and no part of the network."""

from pathlib import Path

import pytest
import torch
from support.episodic import Prepared, Weights, close, logits
from support.pretrain import killed_at, source, tiny, trainer, weights
from torch import Tensor, nn
from torch.nn import functional

from pretrain.training import checkpoint
from pretrain.training.episodes import TaskImages
from pretrain.training.loop import train_recipe

RATE = "rate."


def by_hand(model: nn.Module, weights: Weights, task: TaskImages) -> Tensor:
    adapted = {name: weight for name, weight in weights.items() if not name.startswith(RATE)}
    loss = functional.cross_entropy(logits(model, adapted, task.support), task.support_labels)
    steps = torch.autograd.grad(loss, list(adapted.values()), create_graph=True)
    adapted = {
        name: weight - weights[RATE + name] * step
        for (name, weight), step in zip(adapted.items(), steps, strict=True)
    }
    return logits(model, adapted, task.query)


def test_weights_and_rates_get_the_gradient_through_the_step(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "metasgd", "metasgd.inner_lr=0.3")
    rates = {n: p for n, p in run.ctx.parameters.items() if n.startswith(RATE)}
    assert all((rate == 0.3).all() for rate in rates.values())
    with torch.no_grad():
        for number, rate in enumerate(rates.values()):
            rate.mul_(1 + 0.1 * number)
    copies = {name: rate.detach().clone().requires_grad_() for name, rate in rates.items()}
    ours, theirs = run.gradients(), run.expected(by_hand, copies)
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


def test_rates_go_through_a_checkpoint_and_stay_out_of_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny("metasgd")
    killed_at(9, recipe, tmp_path / "run", monkeypatch)
    stored = checkpoint.load_checkpoint(tmp_path / "run")
    assert stored is not None
    rate = stored[0]["memory/metasgd/rate.fc.weight"]
    assert rate.std() > 0
    made = trainer(recipe, tmp_path / "run")
    assert torch.equal(made.ctx.parameters["rate.fc.weight"].detach(), rate)
    train_recipe(recipe, source(), tmp_path / "run")
    assert not [name for name in weights(tmp_path / "run") if RATE in name]
