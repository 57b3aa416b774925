"""Weight normalization trains lengths separately from directions."""

from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, tiny, trainer
from torch import Tensor

from pretrain.methods.weight_norm import NormalizedMap
from pretrain.weights import surgery

granularity = pytest.mark.parametrize("per", ["channel", "layer"])


def kernel() -> Tensor:
    return torch.randn(4, 3, 2, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@granularity
def test_the_length_is_g_and_v_starts_at_the_weight(per: str) -> None:
    w, mapping = kernel(), NormalizedMap(per)
    g, v = mapping.right_inverse(w)
    assert torch.equal(v, w)
    assert g.numel() == (4 if per == "channel" else 1)
    torch.testing.assert_close(mapping(g, v), w)
    scaled = mapping(-3 * torch.ones_like(g), v)
    units = scaled.flatten(1) if per == "channel" else scaled.reshape(1, -1)
    torch.testing.assert_close(units.norm(dim=1), torch.full_like(g.flatten(), 3.0))


@granularity
def test_the_gradient_of_v_is_orthogonal_to_it_so_plain_sgd_never_shortens_it(per: str) -> None:
    w, mapping = kernel(), NormalizedMap(per)
    g, v = (t.clone().requires_grad_() for t in mapping.right_inverse(w))
    mapping(g, v).square().mul(torch.arange(48).reshape(4, 3, 2, 2)).sum().backward()
    assert v.grad is not None
    units = (v * v.grad).flatten(1).sum(1) if per == "channel" else (v * v.grad).sum().reshape(1)
    torch.testing.assert_close(units, torch.zeros_like(units), atol=1e-11, rtol=0)
    assert float(v.grad.norm()) > 1
    assert float((v - 0.1 * v.grad).norm()) > float(v.norm())


def test_a_unit_of_length_zero_gives_no_nan_and_can_grow() -> None:
    w, mapping = kernel(), NormalizedMap("channel")
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
