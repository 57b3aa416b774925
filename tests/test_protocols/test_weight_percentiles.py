"""Percentiles of weights: against NumPy, by hand, and under a reparametrization."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.nn.utils import parametrize

from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.seeding import torch_generator
from protocols.analyses.weight_percentiles import DEAD, PERCENTILES, SETTINGS, measure_percentiles


def linear(values: list[float], dtype: torch.dtype = torch.float64) -> nn.Linear:
    layer = nn.Linear(len(values), 1, dtype=dtype)
    layer.weight.data = torch.tensor([values], dtype=dtype)
    layer.bias.data.fill_(100.0)
    return layer


def network() -> nn.Module:
    model = nn.Sequential(
        nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.Flatten(), nn.Linear(5, 7), nn.LayerNorm(7)
    )
    generator = torch_generator("percentiles")
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.05, generator=generator)
    model[1].weight.data.fill_(50.0)
    return model


def test_by_hand() -> None:
    layers = measure_percentiles(linear([-0.5, 0.009, 0.3, -0.01, -0.002]), (0, 10, 50, 75, 100))
    assert list(layers) == ["", "all"]
    assert layers["all"] == layers[""]
    spread = layers["all"]
    assert spread.n == 5
    assert spread.percentiles == pytest.approx((-0.5, -0.304, -0.002, 0.009, 0.3))
    assert spread.largest == 0.5
    assert spread.dead == 2 / 5  # 0.01 itself is not below 0.01


def test_layers_and_all_equal_numpy_on_the_kernels_alone() -> None:
    assert (PERCENTILES, DEAD) == ((0, 7, 16, 31, 50, 69, 84, 93, 100), 0.01), "the paper's"
    model = network()
    layers = measure_percentiles(model)
    assert list(layers) == ["0", "3", "all"]
    parts = [model[i].weight.detach().flatten().double().numpy() for i in (0, 3)]
    for name, values in zip(layers, (*parts, np.concatenate(parts)), strict=True):
        assert layers[name].n == len(values)
        expected = np.percentile(values, PERCENTILES)
        assert layers[name].percentiles == pytest.approx(expected, rel=1e-14, abs=1e-16)
        assert layers[name].largest == np.abs(values).max()
        assert layers[name].dead == np.mean(np.abs(values) < DEAD)
        assert 0.05 < layers[name].dead < 0.5


@pytest.mark.parametrize(
    ("dtype", "gap"), [(torch.bfloat16, 2**-7), (torch.float32, 2**-7), (torch.float64, 2**-40)]
)
def test_any_precision_is_interpolated_in_float64(dtype: torch.dtype, gap: float) -> None:
    spread = measure_percentiles(linear([1.0 + gap, 1.0], dtype), (30, 100))["all"]
    assert spread.percentiles == pytest.approx((1.0 + 0.3 * gap, 1.0 + gap), rel=1e-15)


def test_more_weights_than_torch_quantile_allows() -> None:
    """It stops at 2**24."""
    layer = nn.Linear(1, 1)
    layer.weight.data = torch.linspace(1, -1, 2**24 + 1)[None]
    spread = measure_percentiles(layer, (0, 25, 50, 100), dead=0.25)["all"]
    assert spread.percentiles == pytest.approx((-1, -0.5, 0, 1), abs=1e-7)
    assert spread.dead == pytest.approx(0.25, abs=1e-6)


class Arctan(nn.Module):
    def forward(self, v: Tensor) -> Tensor:
        return 0.5 * torch.arctan(v)


def test_a_reparametrized_layer_counts_with_its_effective_weight() -> None:
    layer = linear([-1e6, 0.004, 1.0])
    parametrize.register_parametrization(layer, "weight", Arctan())
    layers = measure_percentiles(layer, (100,))
    assert list(layers) == ["", "all"]
    assert layers["all"].largest == pytest.approx(math.pi / 4, rel=1e-5)
    assert layers["all"].percentiles == pytest.approx((math.pi / 8,))
    assert layers["all"].dead == 1 / 3


def test_invalid_percentiles_and_networks_are_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 100"):
        SETTINGS(percentiles=(50, 101))
    with pytest.raises(UsageError, match="no convolution"):
        measure_percentiles(nn.Sequential(nn.BatchNorm2d(3)))
    with pytest.raises(FsbenchError, match="not finite"):
        measure_percentiles(linear([1.0, math.nan]))
