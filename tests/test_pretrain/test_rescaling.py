"""Scaling keeps a chain's function up to a factor, and norms go where they should."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.rules import build, images
from torch import Tensor, nn

from pretrain.methods.swr import (
    bias_factors,
    input_scales,
    multiply_tensors,
    rescaling_coefficients,
)
from pretrain.weights.surgery import tied_names

positive = st.floats(0.01, 100)
share = st.floats(0, 1)


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@given(now=positive, target=positive, lam=share)
def test_the_norm_becomes_the_weighted_mean(now: float, target: float, lam: float) -> None:
    c = float(rescaling_coefficients(doubles(now), doubles(target), doubles(lam)))
    assert c * now == pytest.approx(lam * target + (1 - lam) * now, rel=1e-12)


@given(now=positive, target=positive, lam=share, times=st.integers(1, 20))
def test_the_distance_to_the_target_decays_geometrically(
    now: float, target: float, lam: float, times: int
) -> None:
    norm = doubles(now)
    for _ in range(times):
        norm = norm * rescaling_coefficients(norm, doubles(target), doubles(lam))
    expected = (1 - lam) ** times * (now - target)
    assert float(norm) - target == pytest.approx(expected, rel=1e-9, abs=1e-9 * max(now, target))


@given(
    target=positive,
    lam=st.floats(0.05, 1),
    pushes=st.lists(st.floats(0, 3), min_size=1, max_size=30),
)
def test_norms_stay_bounded_when_steps_are(target: float, lam: float, pushes: list[float]) -> None:
    """If a step adds at most B to |W|^2 then |W| <= n + sqrt(B) / lam afterwards."""
    norm = doubles(target)
    for push in pushes:
        norm = (norm**2 + push).sqrt()
        norm = norm * rescaling_coefficients(norm, doubles(target), doubles(lam))
        assert float(norm) <= target + max(pushes) ** 0.5 / lam + 1e-9


@given(now=st.tuples(positive, positive), target=st.tuples(positive, positive), lam=share)
def test_the_balance_of_two_layers_never_moves_away_from_the_initial_one(
    now: tuple[float, float], target: tuple[float, float], lam: float
) -> None:
    c = rescaling_coefficients(doubles(*now), doubles(*target), doubles(lam, lam))
    first = now[0] / now[1]
    then = float(c[0] * now[0]) / float(c[1] * now[1])
    start = target[0] / target[1]
    assert abs(then - start) <= abs(first - start) * (1 + 1e-9) + 1e-9


def test_layers_of_norm_zero_now_or_at_the_start_are_left_alone() -> None:
    c = rescaling_coefficients(doubles(0, 2, 0, 2), doubles(1, 0, 0, 4), doubles(*[0.5] * 4))
    assert c.tolist() == [1, 1, 1, 1.5]


def test_bias_factors_by_hand() -> None:
    c = doubles(2, 3, 5, 7)
    assert bias_factors(c, None).tolist() == [2, 6, 30, 210]
    assert bias_factors(c, 1).tolist() == [2, 3, 15, 105]
    assert bias_factors(c, 1, literal=True).tolist() == [2, 6, 30, 210]
    assert bias_factors(c, 2, literal=True).tolist() == [2, 3, 15, 105]
    assert bias_factors(c, 0, literal=True).tolist() == [2, 6, 30, 210]


def test_input_scales_by_hand() -> None:
    """conv norm conv conv norm: the second norm sees the first one's scale times both kernels'."""
    scales = input_scales(doubles(2, 3, 5, 7, 11), [1, 4])
    assert {at: float(q) for at, q in scales.items()} == {1: 2, 4: 3 * 5 * 7}


@given(seed=st.integers(0, 5), zero_biases=st.booleans())
def test_theorem_1_holds_for_any_factors(seed: int, zero_biases: bool) -> None:
    model, roles = build("mlp", side=4)
    if zero_biases:
        for name in roles.layers:
            nn.init.zeros_(model.get_submodule(name).bias)  # type: ignore[arg-type]
    c = doubles(*[0.3 + ((seed + 1) * k * 0.37) % 2 for k in range(1, 4)])
    x = images(4)
    before = model(x).detach()
    multiply_tensors(model, {f"{n}.weight": c[i] for i, n in enumerate(roles.layers)})
    if not zero_biases:
        factors = bias_factors(c, None)
        multiply_tensors(model, {f"{n}.bias": factors[i] for i, n in enumerate(roles.layers)})
    torch.testing.assert_close(model(x).detach(), c.prod() * before, rtol=1e-12, atol=1e-12)


def test_multiplying_goes_through_a_reparametrization() -> None:
    model, _ = build("mlp", side=4)
    layer = model.get_submodule("layer2.0")
    nn.utils.parametrizations.weight_norm(layer)
    before = layer.weight.detach().clone()  # type: ignore[union-attr, operator]
    multiply_tensors(model, {"layer2.0.weight": doubles(3).squeeze()})
    torch.testing.assert_close(layer.weight, 3 * before)  # type: ignore[arg-type]


def test_a_shared_tensor_is_multiplied_once() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    model = nn.Sequential(first, second)
    before = first.weight.detach().clone()
    multiply_tensors(model, dict.fromkeys(("0.weight", "1.weight"), torch.tensor(3.0)))
    torch.testing.assert_close(first.weight.detach(), 3 * before)
    assert tied_names(model) == ("0.weight", "1.weight")
    assert tied_names(nn.Sequential(nn.Linear(2, 2))) == ()
