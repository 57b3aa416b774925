"""The smallest norm among functional equals: closed forms, invariance, limits."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fsbench.core import seeding
from fsbench.core.errors import UsageError
from protocols.analyses.balancedness import (
    bound_lipschitz,
    compute_balancedness,
    find_balancing_factors,
)

SIZES = (5, 7, 6, 3)


def chain(seed: int, sizes: tuple[int, ...] = SIZES) -> list[Tensor]:
    g = seeding.torch_generator("balancedness", seed)
    pairs = zip(sizes[1:], sizes[:-1], strict=True)
    return [torch.randn(n, m, generator=g, dtype=torch.float64) for n, m in pairs]


def rescaled(weights: list[Tensor], factors: list[Tensor]) -> list[Tensor]:
    """Hidden units multiplied by the factors, outgoing weights divided by them."""
    out = [w.clone() for w in weights]
    for i, a in enumerate(factors):
        out[i] = a[:, None] * out[i]
        out[i + 1] = out[i + 1] / a
    return out


def norm(weights: list[Tensor]) -> float:
    return float(torch.cat([w.flatten() for w in weights]).norm())


def outputs(weights: list[Tensor], biases: list[Tensor], x: Tensor) -> Tensor:
    for w, b in zip(weights[:-1], biases[:-1], strict=True):
        x = (x @ w.T + b).relu()
    return x @ weights[-1].T + biases[-1]


def test_two_layers_by_hand() -> None:
    """Unit 1: incoming 3, 4 (25), outgoing 2 (4): least 2 sqrt(100) = 20; unit 2 is balanced."""
    weights = [torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[2.0, 1.0]])]
    assert compute_balancedness(weights) == pytest.approx(((20 + 2) / (29 + 2)) ** 0.5, rel=1e-8)
    (a,) = find_balancing_factors(weights)
    assert a.tolist() == pytest.approx([(4 / 25) ** 0.25, 1], rel=1e-4)
    (one,) = find_balancing_factors(weights, updates=1)
    assert one.tolist() == pytest.approx([(4 / 25) ** 0.125, 1], rel=1e-12)


def test_the_lipschitz_bound_by_hand() -> None:
    """|W_1| = 4 and |W_2| = 3 (spectral); no two inputs are mapped farther apart."""
    weights = [torch.diag(torch.tensor([4.0, 3.0])), torch.tensor([[0.0, 3.0]])]
    assert bound_lipschitz(weights) == pytest.approx(12)
    assert bound_lipschitz(weights, "fro") == pytest.approx(15)
    deep = chain(3)
    x = torch.randn(2, 500, SIZES[0], dtype=torch.float64)
    a, b = outputs(deep, [torch.zeros(len(w), dtype=torch.float64) for w in deep], x)
    ratios = (a - b).norm(dim=1) / (x[0] - x[1]).norm(dim=1)
    assert 0.01 * bound_lipschitz(deep) < ratios.max() <= bound_lipschitz(deep)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), spread=st.floats(0, 2))
def test_two_layers_have_a_closed_form(seed: int, spread: float) -> None:
    """Every unit alone: least of a^2 r + c / a^2 is 2 sqrt(r c)."""
    weights = chain(seed, (4, 6, 3))
    weights[0] = weights[0] * torch.linspace(-spread, spread, 6, dtype=torch.float64)[:, None].exp()
    r, c = weights[0].square().sum(1), weights[1].square().sum(0)
    least = float((2 * (r * c).sqrt()).sum())
    assert compute_balancedness(weights) == pytest.approx(least**0.5 / norm(weights), rel=1e-8)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), spread=st.floats(0, 1.5))
def test_the_least_norm_does_not_depend_on_the_scale_of_units(seed: int, spread: float) -> None:
    weights = chain(seed)
    other = rescaled(weights, [(spread * w[:, 0]).exp() for w in chain(seed + 1)[:-1]])
    least = [compute_balancedness(w, updates=2000) * norm(w) for w in (weights, other)]
    assert least[0] == pytest.approx(least[1], rel=1e-7)
    assert 0 < compute_balancedness(other) <= 1


def test_the_rescaled_network_is_stationary_and_computes_the_same() -> None:
    weights = chain(0)
    biases = [torch.linspace(-1, 1, len(w), dtype=torch.float64) for w in weights]
    factors = find_balancing_factors(weights)
    balanced = rescaled(weights, factors)
    for before, after in pairwise(balanced):
        torch.testing.assert_close(before.square().sum(1), after.square().sum(0), rtol=1e-3, atol=0)
    moved = [a * b for a, b in zip([*factors, torch.ones(3)], biases, strict=True)]
    x = chain(1, (5, 9))[0]
    torch.testing.assert_close(outputs(balanced, moved, x), outputs(weights, biases, x))
    assert norm(balanced) / norm(weights) == pytest.approx(compute_balancedness(weights), rel=1e-12)
    assert compute_balancedness(balanced) == pytest.approx(1, abs=1e-8)
    tiny = [1e-30 * w.float() for w in weights]
    assert compute_balancedness(tiny) == pytest.approx(compute_balancedness(weights), rel=1e-6)


def test_more_updates_lower_the_norm_and_the_tolerance_stops_them() -> None:
    weights = rescaled(chain(5), [torch.full((n,), 3.0).double() for n in SIZES[1:-1]])
    values = [compute_balancedness(weights, updates=n) for n in (0, 1, 2, 5, 100)]
    assert values[0] == 1
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 5
    assert compute_balancedness(weights, tolerance=10) == values[1]


def test_units_without_incoming_or_outgoing_weights_keep_their_scale() -> None:
    weights = chain(2)
    weights[0][1] = 0
    weights[2][:, 4] = 0
    first, second = find_balancing_factors(weights)
    assert float(first[1]) == float(second[4]) == 1
    assert 0 < compute_balancedness(weights) < 1


@pytest.mark.parametrize(
    "shapes", [(), ((3, 4), (2, 4)), ((3, 4, 5, 5), (2, 3))], ids=["none", "gap", "convolution"]
)
def test_weights_that_are_not_a_chain_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(UsageError, match="not a chain"):
        compute_balancedness([torch.ones(shape) for shape in shapes])
    with pytest.raises(UsageError, match="all weights are zero"):
        compute_balancedness([torch.zeros(2, 3)])
