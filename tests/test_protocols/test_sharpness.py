"""Sharpness against noise added by hand; the weights are restored exactly."""

import pytest
import torch
from support.analyses import analysis_input, measures, normalised_images
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.errors import CheckpointError
from fsbench.core.seeding import torch_generator
from protocols.analyses.inputs import AnalysisInput
from protocols.analyses.sharpness import SharpnessSettings, add_noise, run

SETTINGS = SharpnessSettings(sigmas=(0.1, 0.5), draws=2, batch_size=16)


def network() -> AnalysisInput:
    trunk = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.BatchNorm1d(12))
    return analysis_input(trunk, nn.Linear(12, 4), spread=0.5)


def by_hand(inputs: AnalysisInput, sigma: float, draw: int) -> tuple[float, float]:
    """Loss and accuracy (%) with noise drawn parameter by parameter."""
    model = inputs.network.model
    originals = {n: p.detach().clone() for n, p in model.named_parameters()}
    generator = torch_generator("sharpness", 0, draw)
    x, y = normalised_images(inputs)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += sigma * torch.randn(parameter.shape, generator=generator)
        logits = model(x).double()
        for name, parameter in model.named_parameters():
            parameter.copy_(originals[name])
    return float(cross_entropy(logits, y)), 100 * float((logits.argmax(1) == y).double().mean())


def test_losses_and_accuracies_are_those_of_networks_with_noise_added() -> None:
    inputs = network()
    table = [[by_hand(inputs, sigma, draw) for draw in range(2)] for sigma in (0.1, 0.5)]
    clean, accuracy = by_hand(inputs, 0.0, 0)
    finding = run(inputs, SETTINGS)
    loss, right = finding.views
    assert loss.at == right.at == (0.1, 0.5)
    for i, row in enumerate(table):
        losses, accuracies = zip(*row, strict=True)
        assert loss.values[i] == pytest.approx(sum(losses) / 2 - clean, rel=1e-4)
        assert loss.low[i] == pytest.approx(min(losses) - clean, rel=1e-4)
        assert loss.high[i] == pytest.approx(max(losses) - clean, rel=1e-4)
        assert right.values[i] == pytest.approx(sum(accuracies) / 2)
    values = measures(finding)
    assert values["images"] == 40
    assert values["train loss"] == pytest.approx(clean, rel=1e-5)
    assert 100 * values["train accuracy"] == pytest.approx(accuracy)
    assert values["loss increase at sigma 0.5"] == loss.values[1]
    assert values["draws without a finite loss"] == 0


def test_the_weights_come_back_bit_for_bit_even_after_an_error() -> None:
    model = nn.Linear(50, 50)
    model.weight.data[0, 0] = -0.0
    before = {n: p.detach().clone() for n, p in model.named_parameters()}

    def fail() -> None:
        with add_noise(model, 0.3, "noise"):
            assert not torch.equal(model.weight, before["weight"])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    for name, parameter in model.named_parameters():
        assert parameter.detach().numpy().tobytes() == before[name].numpy().tobytes()


def test_a_draw_without_a_finite_loss_is_counted_and_its_sigma_left_out() -> None:
    finding = run(network(), SharpnessSettings(sigmas=(0.1, 1e38), draws=2))
    loss, right = finding.views
    assert loss.at == (0.1,)
    assert right.at == (0.1, 1e38)
    assert measures(finding)["draws without a finite loss"] == 2
    assert "loss increase at sigma 1e+38" not in measures(finding)


def test_a_broken_network_is_refused() -> None:
    inputs = network()
    inputs.network.model.get_parameter("fc.bias").data[0] = float("inf")
    with pytest.raises(CheckpointError, match="losses that are not finite"):
        run(inputs, SETTINGS)
