"""L2 as a gradient: SGD's own decay when the coefficients agree, and no decoupled decay in Adam."""

from pathlib import Path

import pytest
import torch
from support.pretrain import equal, source, tiny, trainer, weights

from pretrain.training.loop import train_recipe


def test_with_sgd_it_is_weight_decay(tmp_path: Path) -> None:
    train_recipe(tiny("l2", "l2.lam=0.02", "weight_decay=0"), source(), tmp_path / "ours")
    train_recipe(tiny("normal", "weight_decay=0.02"), source(), tmp_path / "theirs")
    ours, theirs = weights(tmp_path / "ours"), weights(tmp_path / "theirs")
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-4, atol=1e-6)


def test_the_official_codes_factor_is_twice_the_papers(tmp_path: Path) -> None:
    train_recipe(tiny("l2", "l2.lam=0.02", "l2.half=false"), source(), tmp_path / "code")
    train_recipe(tiny("l2", "l2.lam=0.04"), source(), tmp_path / "paper")
    assert equal(weights(tmp_path / "code"), weights(tmp_path / "paper"))


@pytest.mark.parametrize("on", ["all", "kernels"])
def test_every_parameter_is_included_or_every_kernel(on: str, tmp_path: Path) -> None:
    """Gradients of one step with and without; under `all`, biases and batch norm too."""
    ours, plain = (
        trainer(tiny(name, "weight_decay=0", *more), tmp_path / name)
        for name, more in (("l2", ("l2.lam=0.5", f"l2.on={on}")), ("normal", ()))
    )
    before = {n: p.detach().clone() for n, p in ours.ctx.model.named_parameters()}
    for made in (ours, plain):
        made._open_epoch(2)
        made._step(2)
    for name, parameter in plain.ctx.model.named_parameters():
        with_penalty = ours.ctx.parameters[name].grad
        assert parameter.grad is not None
        assert with_penalty is not None
        strength = 0.5 if on == "all" or parameter.ndim > 1 else 0.0
        torch.testing.assert_close(with_penalty, parameter.grad + strength * before[name])
    assert {"bn1.weight", "bn1.bias", "fc.bias"} < set(before)


@pytest.mark.parametrize("name", ["l2", "l2_init"])
def test_it_goes_through_the_moments_of_adam(name: str, tmp_path: Path) -> None:
    """A decoupled decay would leave the moments as they are."""
    moments = []
    for lam in ("0", "0.5"):
        made = trainer(tiny(name, "optimizer=adam", f"{name}.lam={lam}"), tmp_path / lam)
        made._open_epoch(2)
        made._step(2)
        made._step(2)
        moments.append(made.ctx.optimizer_state()["conv1.weight"]["exp_avg"])
    assert not torch.equal(*moments)
