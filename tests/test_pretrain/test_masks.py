"""Masks: counts, ties and scopes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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
    """One threshold a layer, or one over all: of equal weights the first ones."""
    draw = torch_generator("ties", seed)
    values = {n: torch.randint(-3, 4, (rows, 5), generator=draw).double() for n in ("a", "b")}
    for names, scope in ((("a",), "layer"), (("b",), "layer"), (("a", "b"), "global")):
        flat = torch.cat([values[name].flatten() for name in names])
        order = sorted(range(len(flat)), key=lambda i: (abs(float(flat[i])), i))
        masks_ = masks.smallest_masks(values, fraction, scope)
        assert all(masks_[name].shape == value.shape for name, value in values.items())
        mask = torch.cat([masks_[name].flatten() for name in names])
        count = round(fraction * 100) * len(flat) // 100
        assert set(mask.nonzero().flatten().tolist()) == set(order[:count])


@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_random_masks_have_their_part(p: float) -> None:
    shape, n = torch.Size((200, 100)), 20_000
    drawn = masks.bernoulli_mask(shape, p, torch_generator("mask", 0))
    assert abs(int(drawn.sum()) - p * n) <= 4 * (n * p * (1 - p)) ** 0.5
    exact = masks.uniform_mask(shape, p, torch_generator("mask", 0))
    assert int(exact.sum()) == round(p * n)
    rows = exact.double().mean(dim=1)
    assert p in (0, 1) or 0.02 < float(rows.min()) < float(rows.max()) < 0.45
