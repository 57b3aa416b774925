"""Weights by name: effective weights, thresholds, and laws of re-drawn weights."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import kstest
from torch import Tensor, nn

from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.core.errors import UnknownName
from fsbench.core.seeding import stream
from pretrain.weights import surgery

TOY = ARCHITECTURES.load("toy_resnet")


class Doubled(nn.Module):
    """w = 2 v, with an inverse."""

    def forward(self, v: Tensor) -> Tensor:
        return 2 * v

    def right_inverse(self, w: Tensor) -> Tensor:
        return w / 2


@pytest.fixture
def model() -> nn.Module:
    with stream("surgery"):
        return TOY.build(4, 4)


def test_the_effective_weight_is_read_and_written(model: nn.Module) -> None:
    name, layer = "layer3.0.conv1.weight", model.get_submodule("layer3.0.conv1")
    plain = surgery.get_weight(model, name).detach().clone()
    nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
    assert torch.equal(surgery.get_weight(model, name), plain)
    surgery.set_weight(model, name, plain + 1)
    assert torch.equal(surgery.get_weight(model, name), plain + 1)
    assert torch.equal(layer.parametrizations.weight.original, (plain + 1) / 2)


def test_buffers_and_plain_parameters_are_written_in_place(model: nn.Module) -> None:
    parameter = model.get_parameter("fc.weight")
    surgery.set_weight(model, "fc.weight", torch.ones_like(parameter))
    surgery.set_weight(model, "bn1.running_mean", torch.full((4,), 3.0))
    assert model.get_parameter("fc.weight") is parameter
    assert bool((parameter == 1).all())
    assert model.get_buffer("bn1.running_mean").tolist() == [3.0] * 4


def test_a_threshold_splits_all_parameters(model: nn.Module) -> None:
    everything = tuple(name for name, _ in model.named_parameters())
    early, late = surgery.split_parameters(model, "layer3")
    assert early + late == everything
    assert {"conv1.weight", "bn1.weight", "bn1.bias"} < set(early)
    assert surgery.split_parameters(model, surgery.END) == (everything, ())
    assert surgery.split_parameters(model, "conv1") == ((), everything)
    with pytest.raises(UnknownName, match="layer threshold"):
        surgery.split_parameters(model, "layer9")


def test_kernels_are_convolutions_and_linear_layers_of_a_part(model: nn.Module) -> None:
    layers = TOY.roles(model).layers
    _, late = surgery.split_parameters(model, "layer4")
    assert surgery.kernel_names(layers, late) == (
        "layer4.0.conv1.weight",
        "layer4.0.conv2.weight",
        "layer4.0.downsample.0.weight",
        "fc.weight",
    )
    assert surgery.kernel_names(layers, ()) == ()


def test_redrawn_kernels_follow_the_initial_law_and_the_codes_option_its_own() -> None:
    name, fan_in = "layer4.0.conv2.weight", 64 * 9
    with stream("law", 1):
        fresh = surgery.draw_initial(TOY, 4, 8)[name]
        code = surgery.kaiming_uniform_sqrt5(fresh)
    sigma, bound = (2 / fan_in) ** 0.5, fan_in**-0.5
    assert kstest(fresh.flatten().numpy(), "norm", args=(0, sigma)).pvalue > 0.01
    assert kstest(code.flatten().numpy(), "uniform", args=(-bound, 2 * bound)).pvalue > 0.01
    assert float(fresh.std() / code.std()) == pytest.approx(6**0.5, rel=0.03)


def test_fraction_changed_counts_elements() -> None:
    old = [torch.zeros(3), torch.zeros(1)]
    assert surgery.fraction_changed(old, [torch.tensor([0.0, 1, 2]), torch.zeros(1)]) == 0.5
