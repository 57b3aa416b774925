"""Weight compander: its three maps in float64, clamping, learned scalars."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pretrain import drop_epochs, epochs, lines, source, tiny, trainer, weights
from torch import Tensor, nn

from fsbench.core.errors import UsageError
from pretrain.methods.weight_compander import FUNCTIONS, Compander
from pretrain.recipes import registry
from pretrain.training.loop import Trainer, train_recipe
from pretrain.weights import surgery

CPU = torch.device("cpu")
RANGE = {"arctan": math.pi / 2, "arsinh": math.inf, "erf": 1.0}
shapes = pytest.mark.parametrize("name", FUNCTIONS)
scales = st.sampled_from([0.5, 0.7, 1.0])


def compander(name: str, a: float = 0.7, b: float = 0.8) -> Compander:
    return Compander(FUNCTIONS[name], a, b, False, CPU)


def f64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@shapes
@settings(deadline=None, max_examples=50)
@given(share=st.floats(-0.99, 0.99), a=scales, b=scales)
def test_the_inverse_gives_the_weight_back(name: str, share: float, a: float, b: float) -> None:
    mapping, w = compander(name, a, b), f64(share * a * min(RANGE[name], 2.0))
    torch.testing.assert_close(mapping(mapping.right_inverse(w)), w, rtol=1e-13, atol=1e-15)
    assert int(mapping.clamped) == 0


@shapes
@settings(deadline=None, max_examples=50)
@given(v=st.floats(-1e6, 1e6), a=scales, b=scales)
def test_it_is_odd_increasing_and_bounded(name: str, v: float, a: float, b: float) -> None:
    mapping, x = compander(name, a, b), f64(v)
    assert torch.equal(mapping(-x), -mapping(x))
    assert float(mapping(x).abs()) <= a * RANGE[name]
    near = f64(v / 1e6)
    assert float(mapping(near + 1e-3)) > float(mapping(near))


@shapes
@settings(deadline=None, max_examples=50)
@given(v=st.floats(-3, 3), a=scales, b=scales)
def test_the_slope_is_the_derivative_and_largest_at_zero(
    name: str, v: float, a: float, b: float
) -> None:
    mapping, x = compander(name, a, b), f64(v).requires_grad_()
    (derivative,) = torch.autograd.grad(mapping(x).sum(), x)
    torch.testing.assert_close(mapping.slope(x.detach()), derivative)
    h = 1e-6
    central = (mapping(x.detach() + h) - mapping(x.detach() - h)) / (2 * h)
    torch.testing.assert_close(derivative, central, rtol=1e-6, atol=1e-9)
    at_zero = a / b * (2 / math.sqrt(math.pi) if name == "erf" else 1)
    torch.testing.assert_close(mapping.slope(f64(0.0)), f64(at_zero))
    assert float(derivative) <= at_zero * (1 + 1e-12)


def test_second_derivatives_exist() -> None:
    x = f64(0.3, -2.0).requires_grad_()
    assert torch.autograd.gradgradcheck(compander("arctan"), (x,))


def test_a_raw_map_passes_the_gradient_of_w_to_v() -> None:
    a, b = nn.Parameter(f64(0.7)), nn.Parameter(f64(0.8))
    v, gradient = f64(0.5, -3.0).requires_grad_(), f64(2.0, -1.0)
    for raw in (False, True):
        mapping = Compander(FUNCTIONS["arctan"], a, b, raw, CPU)
        for tensor in (a, b, v):
            tensor.grad = None
        mapping(v).backward(gradient)
        torch.testing.assert_close(a.grad, (gradient * torch.atan(v / b)).sum().reshape(1))
        expected = -(gradient * a * v / (b**2 + v**2)).sum().reshape(1)
        torch.testing.assert_close(b.grad, expected)
        torch.testing.assert_close(v.grad, gradient * (1 if raw else mapping.slope(v.detach())))
        assert torch.equal(mapping(v), Compander(FUNCTIONS["arctan"], a, b, False, CPU)(v))


@pytest.mark.parametrize("name", ["arctan", "erf"])
def test_weights_outside_the_range_are_clamped_and_counted(name: str) -> None:
    mapping, bound = compander(name), 0.7 * RANGE[name]
    w = f64(0.1, bound, -2 * bound, 0.9 * bound)
    clamped = mapping(mapping.right_inverse(w))
    limit = (1 - 1e-3) * bound
    torch.testing.assert_close(clamped, f64(0.1, limit, -limit, 0.9 * bound))
    assert int(mapping.clamped) == 2


def test_small_weights_move_a_over_b_squared_as_fast() -> None:
    mapping, v, lr = compander("arctan", 1.0, 0.6), f64(1e-4).requires_grad_(), 1e-3
    before = mapping(v).detach()
    (gradient,) = torch.autograd.grad(2.0 * mapping(v).sum(), v)
    moved = mapping(v.detach() - lr * gradient) - before
    assert float(moved) == pytest.approx(-lr * 2.0 * (1 / 0.6) ** 2, rel=1e-4)


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


def scalars(made: Trainer) -> dict[str, Tensor]:
    return {n: p for n, p in made.ctx.parameters.items() if n.endswith((".a", ".b"))}


@pytest.mark.parametrize(("learnable", "pairs"), [("fine", 13), ("coarse", 1)])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_learned_scalars_move_and_do_not_decay(
    tmp_path: Path, learnable: str, pairs: int, optimizer: str
) -> None:
    fields = (f"weight_compander.learnable={learnable}", f"optimizer={optimizer}", "lr=0.01")
    made = trainer(tiny("weight_compander", *fields, "weight_compander.b=1"), tmp_path)
    epochs(made, 1)
    learned = scalars(made)
    assert len(made.ctx.roles.layers) == 13
    assert len(learned) == 2 * pairs
    assert all(float(p.detach()) not in (0.7, 1.0) for p in learned.values())
    decays = {
        id(p): (g["weight_decay"], g["effective_decay"])
        for g in made.ctx.optimizer.param_groups
        for p in g["params"]
    }
    assert {decays[id(p)] for p in learned.values()} == {(0.0, 0.0)}
    assert {decays[id(p)] for n, p in made.ctx.parameters.items() if n not in learned} == {
        (made.recipe.weight_decay, 0.0)
    }


def test_a_learned_b_stays_away_from_zero(tmp_path: Path) -> None:
    made = trainer(tiny("weight_compander", "weight_compander.learnable=fine"), tmp_path)
    epochs(made, 1)
    name = next(n for n in scalars(made) if n.endswith(".b"))
    b = made.ctx.parameters[name]
    for start, expected in ((1e-5, 1e-3), (-1e-5, -1e-3), (-0.5, -0.5)):
        b.data.fill_(start)
        made.ctx.memory["before"] = made.ctx.memory["slopes"] = []
        made.ctx.call("after_step")
        assert float(b.detach()) == pytest.approx(expected)


def test_weights_stay_inside_the_range_however_large_the_rate(tmp_path: Path) -> None:
    run = train_recipe(tiny("weight_compander", "lr=5"), source(), tmp_path)
    kernels = [t for n, t in weights(run).items() if t.ndim > 1]
    largest = max(float(t.abs().max()) for t in kernels)
    assert 0.7 * math.pi / 4 < largest <= 0.7 * math.pi / 2 * (1 + 1e-6)


def test_the_identity_refuses_learnable_scalars() -> None:
    with pytest.raises(UsageError, match="no a and b to learn"):
        tiny(
            "weight_compander",
            "weight_compander.function=identity",
            "weight_compander.learnable=fine",
        )


def test_its_rows_on_cifar_state_the_papers_schedule_and_constants() -> None:
    first, second = (
        registry.load_recipe(f"paper/weight_compander_{name}_resnet34")
        for name in ("cifar10", "cifar100")
    )
    assert drop_epochs(first) == (90, 136)
    assert drop_epochs(second) == (60, 120, 160)
    assert [(r.gamma, r.weight_decay, r.plan.epochs) for r in (first, second)] == [
        (0.1, 1e-4, 200),
        (0.2, 5e-4, 200),
    ]
    constants = [(dict(r.methods[0])["a"], dict(r.methods[0])["b"]) for r in (first, second)]
    assert constants == [(0.8, 0.5), (0.7, 0.8)]
    fine = dict(registry.load_recipe("paper/weight_compander_fine_cifar10_resnet18").methods[0])
    assert (fine["learnable"], fine["a"], fine["b"]) == ("fine", 0.5, 1.0)
