"""L2 and L2 Init: gradients of written-out penalties in SGD and Adam, and their anchors."""

from pathlib import Path

import pytest
import torch
from support.events import tensors
from support.pretrain import epochs, equal, tiny, train, trainer, weights
from support.rules import build, context, images
from torch import Tensor, nn

from pretrain.bases import penalties
from pretrain.recipes import plan
from pretrain.training.context import Context
from pretrain.training.loop import Trainer


def with_gradients(*, weight_norm: bool = False) -> Context:
    """The CNN with batch norm after the backward of some loss."""
    model, roles = build("cnn_bn")
    if weight_norm:
        nn.utils.parametrizations.weight_norm(model.get_submodule("fc1"))
    model(images()).square().sum().backward()
    return context(model, roles)


def gradients(ctx: Context) -> dict[str, Tensor]:
    return {n: p.grad.clone() for n, p in ctx.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("anchor", [None, 0.0, 0.7])
@pytest.mark.parametrize("weight_norm", [False, True])
def test_a_pull_is_the_gradient_of_half_the_square(anchor: float | None, weight_norm: bool) -> None:
    """Of all parameters, or of one reparametrized weight as a whole."""
    ours, theirs = (with_gradients(weight_norm=weight_norm) for _ in range(2))
    pulled = dict(theirs.parameters)
    if weight_norm:
        pulled = {"fc1.weight": theirs.model.get_submodule("fc1").weight}  # type: ignore[dict-item]
    anchors = {n: None if anchor is None else torch.full_like(p, anchor) for n, p in pulled.items()}
    penalties.pull(ours, anchors, 0.3)
    sum(0.15 * (p - (anchor or 0)).square().sum() for p in pulled.values()).backward()  # type: ignore[union-attr]
    torch.testing.assert_close(gradients(ours), gradients(theirs))


def test_at_the_anchor_every_gradient_keeps_its_bits_and_none_stays_none() -> None:
    ctx = with_gradients()
    ctx.parameters["fc.bias"].grad = None
    before = gradients(ctx)
    penalties.pull(ctx, {n: p.detach().clone() for n, p in ctx.parameters.items()}, 0.3)
    assert equal(before, gradients(ctx))


def step_once(name: str, out: Path, *settings: str, steps: int = 1) -> Trainer:
    made = trainer(tiny(name, *settings), out)
    made._open_epoch(2)
    for _ in range(steps):
        made._step(2)
    return made


@pytest.mark.parametrize(
    ("setting", "strength"), [("l2.on=all", 0.5), ("l2.half=false", 1.0), ("l2.on=kernels", 0.5)]
)
def test_every_parameter_is_pulled_or_every_kernel(
    setting: str, strength: float, tmp_path: Path
) -> None:
    """Gradients of one step with and without; the official code's factor is twice the paper's."""
    before = tensors(trainer(tiny("normal"), tmp_path / "start"))
    ours = step_once("l2", tmp_path / "l2", "weight_decay=0", "l2.lam=0.5", setting)
    plain = step_once("normal", tmp_path / "normal", "weight_decay=0")
    for name, parameter in plain.ctx.model.named_parameters():
        pull = 0.0 if setting == "l2.on=kernels" and parameter.ndim == 1 else strength
        assert parameter.grad is not None
        expected = parameter.grad + pull * before[name]
        torch.testing.assert_close(ours.ctx.parameters[name].grad, expected)


def test_with_sgd_it_is_weight_decay(tmp_path: Path) -> None:
    ours = weights(train(tmp_path / "ours", "l2", "l2.lam=0.02", "weight_decay=0"))
    theirs = weights(train(tmp_path / "theirs", "normal", "weight_decay=0.02"))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["l2", "l2_init"])
def test_it_goes_through_the_moments_of_adam(name: str, tmp_path: Path) -> None:
    """A decoupled decay would leave the moments as they are."""
    moments = []
    for lam in ("0", "0.5"):
        made = step_once(name, tmp_path / lam, "optimizer=adam", f"{name}.lam={lam}", steps=2)
        moments.append(made.ctx.optimizer_state()["conv1.weight"]["exp_avg"])
    assert not torch.equal(*moments)


def stored_anchors(made: Trainer) -> dict[str, Tensor]:
    made.ctx.acting = "l2_init"
    return penalties.stored_anchors(made.ctx)


@pytest.mark.parametrize("reanchor", [False, True])
def test_the_anchor_is_the_start_or_with_the_option_that_at_new_data(
    reanchor: bool, tmp_path: Path
) -> None:
    fields = plan.scenario_fields("warm-start") | {"l2_init.reanchor_on_new_data": reanchor}
    made = trainer(tiny("l2_init", "plan.rounds=1", "l2_init.lam=0.5").replace(fields), tmp_path)
    start = tensors(made)
    epochs(made, made.recipe.plan.epochs)
    now = tensors(made)
    made._open_epoch(2)
    anchors = stored_anchors(made)
    assert anchors.keys() == {name for name, _ in made.ctx.model.named_parameters()}
    assert all(torch.equal((now if reanchor else start)[n], t) for n, t in anchors.items())
    for parameter in made.ctx.parameters.values():
        parameter.grad = torch.zeros_like(parameter)
    made.ctx.call("after_backward")
    for name, parameter in made.ctx.parameters.items():
        torch.testing.assert_close(parameter.grad, 0.5 * (now[name] - anchors[name]))
    made._epoch(lambda images: None)
    assert equal(stored_anchors(made), anchors)
