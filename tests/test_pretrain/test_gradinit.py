"""GradInit against an independent step, finite differences and its constraint."""

import copy
from pathlib import Path

import pytest
import torch
from support.pretrain import lines, tiny, trainer
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from fsbench.core.seeding import torch_generator
from pretrain.bases.init_scales import (
    KERNELS,
    NORMS,
    ScaleOptimizer,
    parameters_by_kind,
    search_mode,
)
from pretrain.methods.gradinit import Gradinit, compute_step_objective, learn_step_scales
from pretrain.training.batches import Batch

Halves = tuple[Batch, Batch, Batch]


def smooth() -> nn.Module:
    """A small float64 network without kinks."""
    generator = torch_generator("gradinit")
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Softplus(), nn.Flatten(), nn.Linear(64, 4)
    ).double()
    for p in (p for p in model.parameters() if p.ndim > 1):
        p.data.normal_(0, 0.3, generator=generator)
    return model


def halves() -> Halves:
    def half(key: int) -> Batch:
        generator = torch_generator("gradinit-batch", key)
        images = torch.randn(6, 3, 6, 6, generator=generator, dtype=torch.float64)
        return Batch(images, torch.arange(6) % 4)

    return half(0), half(1), half(2)


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
    scales = ScaleOptimizer(parameters_by_kind(model, (*KERNELS, *NORMS, _BatchNorm)), 0.1)
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

        h = 1e-6
        units = torch.eye(len(gradients), dtype=torch.float64) * h
        central = [(value(scales.m + u) - value(scales.m - u)) / (2 * h) for u in units]
    expected = torch.tensor(central, dtype=torch.float64)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-6)
    assert "1.weight" in scales.live
    assert float(gradients.abs().max()) > 1


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


def test_a_run_reports_and_starts_from_the_scaled_network(tmp_path: Path) -> None:
    made = trainer(tiny("gradinit"), tmp_path / "scaled")
    plain = trainer(tiny("normal"), tmp_path / "plain")
    (record,) = lines(tmp_path / "scaled", "rewrites.jsonl")
    assert record["note"].endswith("constraint steps")
    factors = made.ctx.memories["gradinit"]["factors"]
    assert set(record["tensors"]) == {n for n, m in factors.items() if m != 1}
    for name, p in made.ctx.model.named_parameters():
        start = plain.ctx.model.get_parameter(name).detach()
        torch.testing.assert_close(p.detach(), start * factors.get(name, 1.0))
