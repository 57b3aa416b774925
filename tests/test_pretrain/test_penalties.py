"""Penalties equal autograd on the written-out loss term, reparametrized weights included."""

import pytest
import torch
from support.rules import build, context, images
from torch import Tensor, nn

from pretrain.bases import penalties
from pretrain.training.context import Context


def with_gradients(*, weight_norm: bool = False) -> Context:
    """The CNN with batch norm after the backward of some loss."""
    model, roles = build("cnn_bn")
    if weight_norm:
        nn.utils.parametrizations.weight_norm(model.get_submodule("fc1"))
    model(images()).square().sum().backward()
    return context(model, roles)


def gradients(ctx: Context) -> dict[str, Tensor]:
    return {n: p.grad.clone() for n, p in ctx.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("anchor", [None, 0.7])
def test_a_pull_is_the_gradient_of_half_the_square(anchor: float | None) -> None:
    ours, theirs = with_gradients(), with_gradients()
    anchors = {
        n: None if anchor is None else torch.full_like(p, anchor)
        for n, p in ours.parameters.items()
    }
    penalties.pull(ours, anchors, 0.3)
    sum(0.15 * (p - (anchor or 0)).square().sum() for p in theirs.parameters.values()).backward()  # type: ignore[union-attr]
    torch.testing.assert_close(gradients(ours), gradients(theirs))


def test_at_the_anchor_every_gradient_keeps_its_bits() -> None:
    ctx = with_gradients()
    before = gradients(ctx)
    penalties.pull(ctx, {n: p.detach().clone() for n, p in ctx.parameters.items()}, 0.3)
    assert all(torch.equal(before[n], now) for n, now in gradients(ctx).items())


def test_anchors_at_zero_are_the_plain_penalty() -> None:
    ours, theirs = with_gradients(), with_gradients()
    penalties.pull(ours, {n: torch.zeros_like(p) for n, p in ours.parameters.items()}, 0.3)
    penalties.pull(theirs, dict.fromkeys(theirs.parameters), 0.3)
    assert all(torch.equal(gradients(theirs)[n], g) for n, g in gradients(ours).items())


def test_a_reparametrized_weight_is_pulled_as_a_whole() -> None:
    ours, theirs = with_gradients(weight_norm=True), with_gradients(weight_norm=True)
    anchor = torch.full((25, 16), 0.7, dtype=torch.float64)
    penalties.pull(ours, {"fc1.weight": anchor}, 0.3)
    layer = theirs.model.get_submodule("fc1")
    (0.15 * (layer.weight - anchor).square().sum()).backward()  # type: ignore[operator]
    torch.testing.assert_close(gradients(ours), gradients(theirs))


def test_parameters_without_a_gradient_are_left_alone() -> None:
    ctx = with_gradients()
    ctx.parameters["fc.bias"].grad = None
    penalties.pull(ctx, dict.fromkeys(ctx.parameters), 0.3)
    assert ctx.parameters["fc.bias"].grad is None
