"""BatchNorm statistics of networks with random weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fsbench import backbones
from fsbench.backbones.calibration import calibrate, draw_images, round_mantissa
from fsbench.backbones.features import is_constant
from fsbench.data.toy import load_toy_source

ZERO, ONE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
WITH_BATCHNORM = ("fsbench/toy_resnet", "timm/test_resnet", "timm/test_efficientnet")


def test_statistics_are_those_of_the_toy_source() -> None:
    """One layer on the images themselves: mean and variance of their pixels, pass by pass."""
    network = nn.Sequential(nn.BatchNorm2d(3, momentum=0.3))
    words = calibrate(network, 16, ZERO, ONE)
    passes = [draw_images(rank, 16, ZERO, ONE).numpy() for rank in (0, 1)]
    layer = network[0]
    assert words == "BatchNorm statistics of 40 images of toy_source at 16 px"
    mean = np.mean([images.mean(axis=(0, 2, 3)) for images in passes], axis=0)
    variance = np.mean([images.var(axis=(0, 2, 3), ddof=1) for images in passes], axis=0)
    np.testing.assert_allclose(layer.running_mean, mean, rtol=2**-12)
    np.testing.assert_allclose(layer.running_var, variance, rtol=2**-12)
    for statistic in (layer.running_mean, layer.running_var):
        assert torch.equal(statistic, round_mantissa(statistic))
    assert layer.momentum == 0.3
    assert not layer.training
    assert layer.running_mean.dtype == torch.float32


def test_images_are_of_the_source_at_the_size_asked_for() -> None:
    """At its own side an image is the first training image of its class."""
    listing = load_toy_source(Path(), Path())
    first = [np.asarray(image.open()) for image in listing.parts["train"][:20]]
    images = draw_images(0, 32, ZERO, ONE)
    pixels = torch.from_numpy(np.stack(first)).permute(0, 3, 1, 2)
    assert torch.equal((images * 255).round().byte(), pixels)
    normalised = draw_images(0, 32, (0.5, 0.5, 0.5), (0.25, 0.5, 1.0))
    torch.testing.assert_close(normalised[:, 0], (images[:, 0] - 0.5) / 0.25)


@pytest.mark.parametrize("ref", WITH_BATCHNORM)
def test_features_of_a_control_have_a_usual_scale_and_the_same_bits(ref: str) -> None:
    control = backbones.load_backbone(ref, random_init=0)
    side = min(128, control.facts.input_size or 0)
    stated = f"BatchNorm statistics of 40 images of toy_source at {side} px"
    assert control.facts.calibration == stated
    assert str(control.facts).endswith(stated)
    with torch.no_grad():
        features = control.features(draw_images(5, side, ZERO, ONE).float())
    values = features.square().mean(dim=1).sqrt()  # of one value, whatever the width
    assert 0.05 < float(values.min()) <= float(values.max()) < 20
    assert not is_constant(features.numpy())
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    try:
        assert backbones.load_backbone(ref, random_init=0).facts == control.facts
    finally:
        torch.set_num_threads(threads)


def test_networks_without_running_statistics_are_unchanged() -> None:
    facts = backbones.load_backbone("timm/test_vit", random_init=0).facts
    assert facts.calibration is None
    assert "calibration" not in facts.model_dump()
    network = nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False), nn.InstanceNorm2d(3))
    assert calibrate(network, 16, ZERO, ONE) is None


def test_a_network_of_one_size_gets_images_of_it() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 136 * 136, 2), nn.BatchNorm1d(2))
    words = calibrate(network, 136, ZERO, ONE)
    assert words == "BatchNorm statistics of 40 images of toy_source at 136 px"
    assert int(network[2].num_batches_tracked) == 2


def test_rounding_keeps_twelve_bits() -> None:
    values = torch.tensor([1.0, 1 + 2**-11, 1 + 2**-13, -3.0, 0.0, 1e-30], dtype=torch.float64)
    rounded = round_mantissa(values)
    assert rounded[:2].tolist() == [1.0, 1 + 2**-11]
    assert rounded[2:5].tolist() == [1.0, -3.0, 0.0]
    assert abs(float(rounded[5]) / 1e-30 - 1) < 2**-12
