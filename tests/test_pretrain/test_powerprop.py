"""Powerpropagation: the map and its edges at 0 and alpha = 1."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrain.methods.powerprop import PowerMap

alphas = st.sampled_from([1.0, 1.5, 2.0, 3.0, 5.0])


@settings(deadline=None, max_examples=50)
@given(w=st.floats(-3, 3), alpha=alphas)
def test_the_inverse_gives_the_weight_back(w: float, alpha: float) -> None:
    mapping, x = PowerMap(alpha, False), torch.tensor([w], dtype=torch.float64)
    torch.testing.assert_close(mapping(mapping.right_inverse(x)), x, rtol=1e-12, atol=1e-300)


@settings(deadline=None, max_examples=50)
@given(v=st.floats(0.01, 3), sign=st.sampled_from([-1, 1]), alpha=alphas)
def test_value_and_slope(v: float, sign: int, alpha: float) -> None:
    mapping = PowerMap(alpha, False)
    x = torch.tensor([sign * v], dtype=torch.float64, requires_grad=True)
    assert float(mapping(x).detach()) == pytest.approx(sign * v**alpha)
    (derivative,) = torch.autograd.grad(mapping(x).sum(), x)
    assert float(derivative) == pytest.approx(alpha * v ** (alpha - 1))
    torch.testing.assert_close(mapping.slope(x.detach()), derivative)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0])
def test_a_zero_weight_has_zero_gradient_and_no_nan(alpha: float) -> None:
    x = torch.zeros(3, requires_grad=True)
    PowerMap(alpha, False)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0] * 3
    assert PowerMap(alpha, False).slope(torch.zeros(3)).tolist() == [0.0] * 3


def test_alpha_1_is_the_identity() -> None:
    x = torch.randn(5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    mapping = PowerMap(1.0, False)
    assert mapping(x) is x
    assert torch.equal(mapping.right_inverse(x), x)
    assert mapping.slope(torch.zeros(2)).tolist() == [1.0, 1.0]
