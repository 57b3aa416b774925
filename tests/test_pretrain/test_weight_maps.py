"""Maps of weight compander, powerpropagation and weight normalization in float64."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pretrain import epochs, lines, tiny, trainer
from torch import Tensor, nn

from pretrain.methods.powerprop import PowerMap
from pretrain.methods.weight_compander import FUNCTIONS, Compander
from pretrain.methods.weight_norm import NormalizedMap, normalize_units
from pretrain.weights import surgery

RANGE = {"arctan": math.pi / 2, "arsinh": math.inf, "erf": 1.0}
ALPHAS = (1.0, 1.5, 2.0, 3.0, 5.0)


def compander(name: str, a: Any = 0.7, b: Any = 0.8, raw: bool = False) -> Compander:
    return Compander(FUNCTIONS[name], a, b, raw, torch.device("cpu"))


def f64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


MAPS = {f"powerprop {alpha}": PowerMap(alpha, False) for alpha in ALPHAS} | {
    f"{name} {a} {b}": compander(name, a, b)
    for name in FUNCTIONS
    for a, b in ((0.5, 1.0), (0.7, 0.8), (1.0, 0.5))
}
mappings = pytest.mark.parametrize("mapping", MAPS.values(), ids=MAPS)
quick = settings(max_examples=25)


@mappings
@quick
@given(share=st.floats(-0.49, 0.49))
def test_the_inverse_gives_the_weight_back(mapping: Any, share: float) -> None:
    w = f64(share)
    torch.testing.assert_close(mapping(mapping.right_inverse(w)), w, rtol=1e-12, atol=1e-15)


@mappings
@quick
@given(v=st.floats(0.01, 3))
def test_a_map_is_odd_and_its_slope_the_derivative(mapping: Any, v: float) -> None:
    x = f64(v).requires_grad_()
    assert torch.equal(mapping(-x), -mapping(x))
    (derivative,) = torch.autograd.grad(mapping(x).sum(), x)
    torch.testing.assert_close(mapping.slope(x.detach()), derivative)
    assert float(derivative) >= 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compander_is_bounded_and_steepest_at_zero(name: str) -> None:
    mapping, v = compander(name), torch.cat([f64(-1e6, 1e6, 0), torch.linspace(-9, 9, 99).double()])
    assert float(mapping(v).abs().max()) <= 0.7 * RANGE[name]
    at_zero = 0.7 / 0.8 * (2 / math.sqrt(math.pi) if name == "erf" else 1)
    torch.testing.assert_close(mapping.slope(f64(0.0)), f64(at_zero))
    assert float(mapping.slope(v).max()) <= at_zero * (1 + 1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_power_by_hand_and_no_nan_at_zero(alpha: float) -> None:
    mapping, x = PowerMap(alpha, False), f64(-0.5, 2.0, 0.0).requires_grad_()
    values = mapping(x)
    assert values.tolist() == pytest.approx([-(0.5**alpha), 2**alpha, 0])
    slopes = [alpha * 0.5 ** (alpha - 1), alpha * 2 ** (alpha - 1), float(alpha == 1)]
    assert torch.autograd.grad(values.sum(), x)[0].tolist() == pytest.approx(slopes)
    assert alpha != 1 or mapping(x) is x


def test_second_derivatives_exist() -> None:
    x = f64(0.3, -2.0).requires_grad_()
    assert torch.autograd.gradgradcheck(compander("arctan"), (x,))


def test_a_raw_map_passes_the_gradient_of_w_to_v() -> None:
    a, b = nn.Parameter(f64(0.7)), nn.Parameter(f64(0.8))
    v, gradient = f64(0.5, -3.0).requires_grad_(), f64(2.0, -1.0)
    for raw in (False, True):
        mapping = compander("arctan", a, b, raw)
        for tensor in (a, b, v):
            tensor.grad = None
        mapping(v).backward(gradient)
        torch.testing.assert_close(a.grad, (gradient * torch.atan(v / b)).sum().reshape(1))
        expected = -(gradient * a * v / (b**2 + v**2)).sum().reshape(1)
        torch.testing.assert_close(b.grad, expected)
        torch.testing.assert_close(v.grad, gradient * (1 if raw else mapping.slope(v.detach())))
        assert torch.equal(mapping(v), compander("arctan", a, b)(v))


@pytest.mark.parametrize("name", ["arctan", "erf"])
def test_weights_outside_the_range_are_clamped_and_counted(name: str) -> None:
    mapping, bound = compander(name), 0.7 * RANGE[name]
    w = f64(0.1, bound, -2 * bound, 0.9 * bound)
    clamped = mapping(mapping.right_inverse(w))
    limit = (1 - 1e-3) * bound
    torch.testing.assert_close(clamped, f64(0.1, limit, -limit, 0.9 * bound))
    assert int(mapping.clamped) == 2


def test_clamps_are_logged_at_the_start_and_at_every_rewrite(tmp_path: Path) -> None:
    made = trainer(tiny("weight_compander", "weight_compander.a=0.5"), tmp_path)
    plain = trainer(tiny("normal"), tmp_path / "normal")
    limit = 0.5 * math.pi / 2 * (1 - 1e-3)
    names = [f"{layer}.weight" for layer in made.ctx.roles.layers]
    outside = {n: int((surgery.get_weight(plain.ctx.model, n).abs() > limit).sum()) for n in names}
    (first,) = lines(tmp_path, "rewrites.jsonl")
    assert first["tensors"] == [n for n in names if outside[n]]
    assert first["note"].startswith(f"{sum(outside.values())} of ")
    made.ctx.acting = "weight_compander"
    made.ctx.rewrite({"fc.weight": torch.full((4, 64), 9.0)}, "large")
    (_, large) = lines(tmp_path, "rewrites.jsonl")
    assert large["note"] == "large; 256 elements clamped to the range"
    weight = surgery.get_weight(made.ctx.model, "fc.weight").detach()
    torch.testing.assert_close(weight, torch.full((4, 64), limit))


@pytest.mark.parametrize(("learnable", "pairs"), [("fine", 13), ("coarse", 1)])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_learned_scalars_move_do_not_decay_and_stay_away_from_zero(
    tmp_path: Path, learnable: str, pairs: int, optimizer: str
) -> None:
    fields = (f"weight_compander.learnable={learnable}", f"optimizer={optimizer}", "lr=0.01")
    made = trainer(tiny("weight_compander", *fields, "weight_compander.b=1"), tmp_path)
    epochs(made, 1)
    learned = {n: p for n, p in made.ctx.parameters.items() if n.endswith((".a", ".b"))}
    assert len(learned) == 2 * pairs
    assert all(float(p.detach()) not in (0.7, 1.0) for p in learned.values())
    names = {id(p): n for n, p in made.ctx.parameters.items()}
    for group in made.ctx.optimizer.param_groups:
        for parameter in group["params"]:
            decay = 0.0 if names[id(parameter)] in learned else made.recipe.weight_decay
            assert (group["weight_decay"], group["effective_decay"]) == (decay, 0.0)
    b = next(p for n, p in learned.items() if n.endswith(".b"))
    for start, expected in ((1e-5, 1e-3), (-1e-5, -1e-3), (-0.5, -0.5)):
        b.data.fill_(start)
        made.ctx.memory["before"] = made.ctx.memory["slopes"] = []
        made.ctx.call("after_step")
        assert float(b.detach()) == pytest.approx(expected)


def draw_kernel() -> Tensor:
    return torch.randn(4, 3, 2, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def sum_units(w: Tensor, per: str) -> Tensor:
    return w.flatten(1).sum(1) if per == "channel" else w.sum().reshape(1)


granularity = pytest.mark.parametrize("per", ["channel", "layer"])


@granularity
def test_g_is_the_length_and_the_gradient_of_v_orthogonal_to_it(per: str) -> None:
    """So plain SGD never shortens v."""
    w, mapping = draw_kernel(), NormalizedMap(per)
    g, v = (t.clone().requires_grad_() for t in mapping.right_inverse(w))
    assert torch.equal(v, w)
    assert g.numel() == (4 if per == "channel" else 1)
    torch.testing.assert_close(mapping(g, v), w)
    scaled = mapping(-3 * torch.ones_like(g), v)
    torch.testing.assert_close(sum_units(scaled**2, per), torch.full_like(g.flatten(), 9.0))
    mapping(g, v).square().mul(torch.arange(48).reshape(4, 3, 2, 2)).sum().backward()
    assert v.grad is not None
    products = sum_units(v * v.grad, per)
    torch.testing.assert_close(products, torch.zeros_like(products), atol=1e-11, rtol=0)
    assert float(v.grad.norm()) > 1


def test_a_unit_of_length_zero_gives_no_nan_and_can_grow() -> None:
    w, mapping = draw_kernel(), NormalizedMap("channel")
    w[2] = 0
    g, v = (t.clone().requires_grad_() for t in mapping.right_inverse(w))
    torch.testing.assert_close(mapping(g, v), w)
    mapping(g, v).sum().backward()
    assert g.grad is not None
    assert v.grad is not None
    assert torch.isfinite(v.grad).all()
    assert float(g.grad[2].abs()) > 0


@granularity
def test_scaling_the_weight_changes_g_alone(per: str, tmp_path: Path) -> None:
    made = trainer(tiny("weight_norm", f"weight_norm.per={per}"), tmp_path)
    epochs(made, 1)
    model, name = made.ctx.model, "layer3.0.conv2.weight"
    g, v = (model.get_parameter(n) for n in surgery.trained_names(model, name))
    w, old_g, old_v = (t.detach().clone() for t in (surgery.get_weight(model, name), g, v))
    surgery.set_weight(model, name, 0.5 * w)
    assert torch.equal(v, old_v)
    torch.testing.assert_close(g, 0.5 * old_g)
    torch.testing.assert_close(surgery.get_weight(model, name), 0.5 * w)
    surgery.set_weight(model, name, -w)
    torch.testing.assert_close(v, -w)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_fused_kernel_is_the_map(layout: torch.memory_format) -> None:
    """With its gradients and in the layout of v."""
    v = torch.randn(6, 4, 3, 3, generator=torch.Generator().manual_seed(5)).double()
    v = v.to(memory_format=layout).requires_grad_()
    g = torch.linspace(0.5, 2, 6, dtype=torch.float64).view(6, 1, 1, 1).requires_grad_()
    results = []
    for w in (NormalizedMap("channel")(g, v), normalize_units(g, v)):
        assert w.stride() == v.stride()
        results.append((w, *torch.autograd.grad((w**3).sum(), (g, v))))
    torch.testing.assert_close(*results)
