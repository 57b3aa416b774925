"""NIO and GradInit against loops and finite differences in float64, and their invariants."""

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import timm
import torch
from support.pretrain import epochs, lines, tiny, trainer
from torch import Tensor, nn
from torch.nn import functional

from fsbench.core.errors import FsbenchError
from fsbench.core.seeding import stream, torch_generator
from pretrain.bases.init_scales import (
    KERNELS,
    NORMS,
    ScaleOptimizer,
    parameters_by_kind,
    search_mode,
)
from pretrain.methods.gradinit import Gradinit, compute_step_objective, learn_step_scales
from pretrain.methods.nio import (
    Nio,
    Objective,
    compute_grad_cosine,
    compute_gradient_norms,
    compute_objective,
    compute_part_borders,
    compute_part_gradients,
    learn_scales,
)
from pretrain.recipes.registry import compose_methods
from pretrain.training.batches import Batch

OBJECTIVES: tuple[Objective, ...] = ("gc_gn_sqrt", "gc", "gc_gn", "gv", "gv_gn", "gv_gn_sqrt")
BN = nn.modules.batchnorm._BatchNorm


def smooth(norm: bool = True) -> nn.Module:
    """A small float64 network without kinks, with biases that are zero and one that is not."""
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4) if norm else nn.Identity(), nn.Softplus()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * 16, 5), nn.Tanh(), nn.Linear(5, 4))
    generator = torch_generator("nio", int(norm))
    for name, p in model.double().named_parameters():
        if p.ndim > 1 or name == "4.bias":
            p.data.normal_(0, 0.3, generator=generator)
        elif not name.startswith("1."):
            p.data.zero_()
    return model


def batch(n: int = 16, side: int = 6, key: int = 0, dtype: torch.dtype = torch.float64) -> Batch:
    generator = torch_generator("nio-batch", key)
    images = torch.randn(n, 3, side, side, generator=generator, dtype=dtype)
    return Batch(images, torch.arange(n) % 4)


def endless(n: int = 16, **kind: object) -> Iterator[Batch]:
    return (batch(n, key=i, **kind) for i in itertools.count(1))  # type: ignore[arg-type]


def test_the_parts_of_the_official_code() -> None:
    assert compute_part_borders(64, 4, 0.2) == [(0, 19), (12, 38), (25, 57), (38, 64)]
    assert compute_part_borders(128, 2, 0.6) == [(0, 102), (25, 128)]
    assert compute_part_borders(10, 5, 0.0) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]


def test_gradients_norms_and_cosine_equal_a_loop_over_parts() -> None:
    model, data, borders = smooth(), batch(), [(0, 9), (7, 16)]
    with search_mode(model):
        gradients = compute_part_gradients(model, data, borders, graph=False)
        rows = []
        for start, stop in borders:
            model.zero_grad()
            losses = functional.cross_entropy(model(data.images), data.labels, reduction="none")
            (losses[start:stop].sum() / (stop - start)).backward()
            kernels = [m for m in model if isinstance(m, nn.Conv2d | nn.Linear)]
            rows.append(
                torch.cat([p.grad.flatten() for m in kernels for p in m.parameters()])  # type: ignore[union-attr]
            )
    expected = torch.stack(rows)
    assert gradients.shape[1] == sum(p.numel() for m in kernels for p in m.parameters())
    torch.testing.assert_close(gradients.sort().values, expected.sort().values)
    torch.testing.assert_close(compute_gradient_norms(gradients), expected.norm(dim=1))
    dot = float(expected[0] @ expected[1])
    gc = dot / float(expected[0].norm() * expected[1].norm())
    assert float(compute_grad_cosine(gradients)) == pytest.approx(gc)
    assert -1 <= gc <= 1


def test_objectives_by_hand() -> None:
    g = torch.tensor([[3.0, 4.0], [4.0, 3.0]], dtype=torch.float64)
    gc, gv = 24 / 25, 0.5
    expected = {"gc": -gc, "gv": gv, "gc_gn_sqrt": -gc - 10, "gv_gn_sqrt": gv - 10}
    expected |= {"gc_gn": -gc - 50, "gv_gn": gv - 50}
    actual = {kind: float(compute_objective(g, kind)) for kind in OBJECTIVES}
    assert actual == pytest.approx(expected)


def differentiate(value: Callable[[Tensor], float], at: Tensor, h: float = 1e-5) -> Tensor:
    """Return central differences of a function of the factors."""
    units = torch.eye(len(at), dtype=torch.float64) * h
    central = [(value(at + unit) - value(at - unit)) / (2 * h) for unit in units]
    return torch.tensor(central, dtype=torch.float64)


@pytest.mark.parametrize("kind", OBJECTIVES)
@pytest.mark.parametrize("norm", [True, False])
def test_the_gradient_of_the_factors_is_the_finite_difference(kind: Objective, norm: bool) -> None:
    model, data, borders = smooth(norm), batch(), compute_part_borders(16, 4, 0.2)
    scales = ScaleOptimizer(parameters_by_kind(model, (*KERNELS, *NORMS, BN)), 0.1)

    def compute(m: Tensor, graph: bool) -> Tensor:
        scales.write(m)
        return compute_objective(compute_part_gradients(model, data, borders, graph=graph), kind)

    with search_mode(model):
        at = scales.m * 1.1
        slopes = scales.gradient(compute(at, True))
        expected = differentiate(lambda m: float(compute(m, False)), at)
    torch.testing.assert_close(slopes, expected, rtol=1e-5, atol=1e-7)
    assert float(slopes.abs().max()) > 1e-3


def test_the_steps_are_those_of_gradinits_adam() -> None:
    w = nn.Parameter(torch.tensor([2.0, 0.0], dtype=torch.float64))
    scales = ScaleOptimizer({"weight": w, "bias": nn.Parameter(torch.zeros(2))}, 0.1)
    assert list(scales.live) == ["weight"]
    alpha, first, second, steps = 1.0, [0.0, 0.0], 0.0, [0, 0]
    for gradient, kind in ((0.5, 0), (-7.0, 1), (0.25, 0), (3.0, 1), (2.0, 0), (9.0, 0)):
        scales.descend(torch.tensor([gradient], dtype=torch.float64), bool(kind))
        clipped = max(-1.0, min(1.0, gradient))
        steps[kind] += 1
        first[kind] = 0.9 * first[kind] + 0.1 * clipped
        second = 0.999 * second + 0.001 * clipped**2
        denominator = math.sqrt(second / (1 - 0.999 ** sum(steps))) + 1e-8
        alpha = max(alpha - 0.1 / (1 - 0.9 ** steps[kind]) * first[kind] / denominator, 0.01)
        assert float(scales.m) == pytest.approx(alpha, rel=1e-12)
        torch.testing.assert_close(w.detach(), torch.tensor([2 * alpha, 0.0], dtype=torch.float64))


def test_factors_have_a_lower_bound() -> None:
    named = {n: nn.Parameter(torch.ones(2)) for n in ("a.weight", "a.bias")}
    scales = ScaleOptimizer(named, 5.0)
    scales.descend(torch.ones(2, dtype=torch.float64), False)
    assert scales.factors() == {"a.weight": 0.01, "a.bias": 0.0}
    with pytest.raises(FsbenchError, match="not finite"):
        scales.descend(torch.tensor([math.nan, 0.0], dtype=torch.float64), False)


def test_only_positive_factors_change_and_the_model_keeps_its_modes() -> None:
    model = smooth().train()
    model[1].eval()
    before = {n: t.clone() for n, t in model.state_dict().items()}
    nio = Nio(iterations=5, rate=0.05, parts=2, gamma=100.0)
    outcome = learn_scales(model, endless(), [batch()], nio, 100.0)
    after, factors = model.state_dict(), outcome.factors
    zero = {"0.bias", "1.bias", "6.bias"}
    assert factors.keys() == {n for n, _ in model.named_parameters()} - zero
    assert len({round(m, 6) for m in factors.values()}) > 1
    assert min(factors.values()) >= 0.01
    for name, tensor in before.items():
        expected = tensor * factors[name] if name in factors else tensor
        torch.testing.assert_close(after[name], expected, msg=name)
    statistics = ("1.running_mean", "1.running_var", "1.num_batches_tracked")
    assert all(torch.equal(after[n], before[n]) for n in statistics)
    assert model[1].track_running_stats
    assert all(p.grad is None for p in model.parameters())
    assert [m.training for m in model] == [i != 1 for i in range(7)]
    assert outcome.steps == (5, 0)
    assert str(outcome).startswith("GradCosine ")


@pytest.mark.parametrize(
    ("objective", "cap", "steps", "measure", "least"),
    [
        ("gc", 100.0, (20, 0), 0, 0.01),
        ("gc_gn_sqrt", 100.0, (20, 0), 1, 0.1),
        ("gc", 1e-3, (0, 20), 1, -math.inf),
    ],
)
def test_steps_raise_the_cosine_or_the_norm_and_lower_a_norm_above_the_cap(
    objective: Objective, cap: float, steps: tuple[int, int], measure: int, least: float
) -> None:
    nio, data = Nio(iterations=20, rate=0.02, objective=objective, parts=2), batch()
    outcome = learn_scales(smooth(False), itertools.repeat(data), [data], nio, cap)
    assert outcome.steps == steps
    change = outcome.after[measure] - outcome.before[measure]
    assert change > least if steps[0] else change < 0


def test_a_shared_tensor_has_one_factor() -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    named = parameters_by_kind(nn.Sequential(first, second), KERNELS)
    assert list(named) == ["0.weight", "0.bias", "1.bias"]


WINDOWS = {"patch_size": 2, "window_size": 4, "depths": (2, 2), "num_heads": (1, 2)}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("swin_tiny_patch4_window7_224", {"img_size": 32, "embed_dim": 8, **WINDOWS}),
        ("vit_tiny_patch16_224", {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2}),
        ("test_convnext", {}),
        ("test_efficientnet", {}),
        ("test_resnet", {}),
    ],
)
def test_it_works_on_timm_networks(name: str, options: dict[str, object]) -> None:
    with stream("nio", name):
        model = timm.create_model(name, num_classes=4, **options)
    before = {n: t.clone() for n, t in model.state_dict().items()}
    kind = {"side": 32, "dtype": torch.float32}
    probe = batch(8, **kind)  # type: ignore[arg-type]
    outcome = learn_scales(model, endless(8, **kind), [probe], Nio(iterations=2, parts=2), 1e9)
    assert all(math.isfinite(x) for x in (*outcome.before, *outcome.after))
    # behind a norm layer that starts at zero nothing has a gradient yet
    assert sum(m != 1 for m in outcome.factors.values()) >= len(outcome.factors) / 2 > 5
    for n, t in model.state_dict().items():
        torch.testing.assert_close(t, before[n] * outcome.factors.get(n, 1), msg=n)


def test_an_operation_without_a_double_backward_is_named() -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return 2 * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: object, gradient: Tensor) -> Tensor:
            return 2 * gradient

    class Layer(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return Once.apply(x)

    model = nn.Sequential(nn.Flatten(), nn.Linear(108, 5), nn.Tanh(), Layer(), nn.Linear(5, 4))
    kind = {"dtype": torch.float32}
    with pytest.raises(FsbenchError, match="differentiated twice"):
        learn_scales(model, endless(8, **kind), [batch(8, **kind)], Nio(parts=2), 1e9)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["nio", "gradinit"])
def test_a_run_starts_from_the_scaled_network_and_reports_it(name: str, tmp_path: Path) -> None:
    made = trainer(tiny(name), tmp_path / "scaled")
    plain = trainer(tiny("normal"), tmp_path / "plain")
    (record,) = lines(tmp_path / "scaled", "rewrites.jsonl")
    memory = made.ctx.memories[name]
    factors = memory["factors"]
    assert record["note"].startswith(f"GradCosine {memory['before'][0]:.4f} -> ")
    assert record["note"].endswith("constraint steps")
    assert set(record["tensors"]) == {n for n, m in factors.items() if m != 1}
    assert record["step"] == 0
    assert "bn1.bias" not in factors
    for tensor, p in made.ctx.model.named_parameters():
        start = plain.ctx.model.get_parameter(tensor).detach()
        torch.testing.assert_close(p.detach(), start * factors.get(tensor, 1.0))


@pytest.mark.parametrize("scaled", [True, False])
def test_redraws_follow_the_scaled_distribution_with_the_option(
    tmp_path: Path, scaled: bool
) -> None:
    draws = {}
    for run, field in (("plain", "nio.iterations=0"), ("scaled", f"nio.scale_redraws={scaled}")):
        made = trainer(tiny("nio", field), tmp_path / run)
        made.ctx.acting = "nio"
        draws[run] = made.ctx.fresh(["fc.weight"])["fc.weight"]
    m = made.ctx.memories["nio"]["factors"]["fc.weight"] if scaled else 1.0
    torch.testing.assert_close(draws["scaled"], draws["plain"] * m)
    assert (m != 1.0) is scaled


def test_it_comes_before_a_reparametrization(tmp_path: Path) -> None:
    both = compose_methods(tiny("nio", "nio.iterations=5"), "nio+weight_norm")
    made = trainer(both, tmp_path)
    epochs(made, 1)
    assert "fc.weight" in made.ctx.memories["nio"]["factors"]


# GradInit


def halves() -> tuple[Batch, Batch, Batch]:
    return batch(6), batch(6, key=1), batch(6, key=2)


def loss(model: nn.Module, a: Batch, b: Batch) -> Tensor:
    logits = model(torch.cat([a.images, b.images]))
    return functional.cross_entropy(logits, torch.cat([a.labels, b.labels]))


@pytest.mark.parametrize("adam", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
def test_the_objective_is_the_loss_after_one_step_divided_by_eta(
    adam: bool, normalise: bool
) -> None:
    model, (a, b, c) = smooth(), halves()
    gradinit = Gradinit(gamma=1e9, eta=0.05, normalise=normalise)
    with search_mode(model):
        value, bound = compute_step_objective(model, (a, b, c), gradinit, adam)
        moved = copy.deepcopy(model)
        loss(moved, a, b).backward()
        gradients = [p.grad for p in moved.parameters() if p.grad is not None]
        length = torch.cat([g.flatten() for g in gradients]).norm()
        with torch.no_grad():
            for p in moved.parameters():
                assert p.grad is not None
                step = p.grad.sign() if adam else p.grad / length if normalise else p.grad
                p -= 0.05 * step
        expected = loss(moved, a, c) / 0.05
    assert not bound
    torch.testing.assert_close(value, expected)


def test_its_gradient_treats_the_direction_as_a_constant() -> None:
    model, data, gradinit = smooth(), halves(), Gradinit(gamma=1e9)
    scales = ScaleOptimizer(parameters_by_kind(model, (*KERNELS, *NORMS, BN)), 0.1)
    with search_mode(model):
        gradients = scales.gradient(compute_step_objective(model, data, gradinit, False)[0])
        loss(model, data[0], data[1]).backward()
        grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        length = torch.cat([g.flatten() for g in grads.values()]).norm()
        start = {n: p.detach().clone() for n, p in model.named_parameters()}

        def value(m: Tensor) -> float:
            scales.write(m)
            with torch.no_grad():
                for name, p in model.named_parameters():
                    p -= 0.1 * grads[name] / length
                result = float(loss(model, data[0], data[2]) / 0.1)
                for name, p in model.named_parameters():
                    p.copy_(start[name])
            return result

        expected = differentiate(value, scales.m, 1e-6)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-6)
    assert "1.weight" in scales.live
    assert float(gradients.abs().max()) > 0.1


@pytest.mark.parametrize("adam", [False, True])
def test_above_the_cap_it_minimises_the_gradient_norm(adam: bool) -> None:
    model, data = smooth(), halves()
    with search_mode(model):
        norm, bound = compute_step_objective(model, data, Gradinit(gamma=1e-3), adam)
        gradients = torch.autograd.grad(loss(model, data[0], data[1]), list(model.parameters()))
    flat = torch.cat([g.flatten() for g in gradients])
    assert bound
    torch.testing.assert_close(norm.detach(), flat.abs().sum() if adam else flat.norm())


def test_steps_lower_the_objective_and_keep_directions() -> None:
    model, data = smooth(), halves()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    gradinit = Gradinit(gamma=1e9, iterations=10, rate=0.01)
    with search_mode(model):
        first = float(compute_step_objective(model, data, gradinit, False)[0].detach())
    outcome = learn_step_scales(model, iter(data * 10), [data[0]], gradinit)
    with search_mode(model):
        assert float(compute_step_objective(model, data, gradinit, False)[0].detach()) < first - 0.1
    assert outcome.steps == (10, 0)
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), before[name] * outcome.factors.get(name, 1.0))
