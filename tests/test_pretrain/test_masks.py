"""Masks: counts, ties, scopes, and weights that stay at zero."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.pretrain import tiny, trainer
from torch import nn

from fsbench.core.seeding import torch_generator
from pretrain.bases import masks

parts = st.integers(0, 100).map(lambda percent: percent / 100)


@given(percent=st.integers(0, 100), n=st.integers(0, 500))
def test_a_count_is_rounded_down_exactly(percent: int, n: int) -> None:
    assert masks.floor_count(percent / 100, n) == percent * n // 100


@given(fraction=parts, rows=st.integers(1, 9), seed=st.integers(0, 5))
def test_the_smallest_are_those_of_a_sort_and_exactly_so_many(
    fraction: float, rows: int, seed: int
) -> None:
    value = torch.randint(-3, 4, (rows, 5), generator=torch_generator("ties", seed)).double()
    mask = masks.smallest_masks({"w": value}, fraction, "layer")["w"]
    assert int(mask.sum()) == round(fraction * 100) * rows * 5 // 100
    order = sorted(range(rows * 5), key=lambda i: (abs(float(value.flatten()[i])), i))
    assert set(mask.flatten().nonzero().flatten().tolist()) == set(order[: int(mask.sum())])


def test_one_threshold_over_all_layers_or_one_each() -> None:
    values = {
        "small": torch.tensor([[0.1, -0.2, 0.3, 0.4]]),
        "large": torch.tensor([5.0, -6, 7, 8]),
    }
    by_layer, shared = (masks.smallest_masks(values, 0.5, scope) for scope in ("layer", "global"))
    assert {n: m.flatten().tolist() for n, m in by_layer.items()} == {
        "small": [True, True, False, False],
        "large": [True, True, False, False],
    }
    assert {n: int(m.sum()) for n, m in shared.items()} == {"small": 4, "large": 0}
    assert {n: m.shape for n, m in shared.items()} == {n: v.shape for n, v in values.items()}


@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_random_masks_have_their_part_and_differ(p: float) -> None:
    shape, n = torch.Size((200, 100)), 20_000
    one, other = (masks.bernoulli_mask(shape, p, torch_generator("mask", i)) for i in (0, 1))
    assert abs(int(one.sum()) - p * n) <= 4 * (n * p * (1 - p)) ** 0.5
    exact = masks.uniform_mask(shape, p, torch_generator("mask", 0))
    assert int(exact.sum()) == round(p * n)
    if p == 0.2:
        assert not torch.equal(one, other)
        rows = exact.double().mean(dim=1)
        assert 0.02 < float(rows.min()) < float(rows.max()) < 0.45


class Doubled(nn.Module):
    """w = 2 v, with an inverse."""

    def forward(self, v: torch.Tensor) -> torch.Tensor:
        return 2 * v

    def right_inverse(self, w: torch.Tensor) -> torch.Tensor:
        return w / 2


@pytest.mark.parametrize("parametrized", [False, True])
def test_weights_outside_the_mask_are_zero_and_the_others_untouched(
    tmp_path: Path, parametrized: bool
) -> None:
    ctx = trainer(tiny("normal"), tmp_path).ctx
    layer = ctx.model.get_submodule("layer2.0.conv1")
    if parametrized:
        nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
    before = layer.weight.detach().clone()
    keep = masks.bernoulli_mask(before.shape, 0.5, torch_generator("keep"))
    masks.hold_at_zero(ctx, {"layer2.0.conv1.weight": keep})
    assert torch.equal(layer.weight.detach(), torch.where(keep, before, 0.0))
