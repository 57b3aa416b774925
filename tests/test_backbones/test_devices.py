"""Names of devices, and features that do not depend on them."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from support.cases import read_cases

from fsbench.backbones import load_backbone
from fsbench.backbones.base import feature_spec
from fsbench.backbones.features import compute_features
from fsbench.backbones.kernels import float32_precision, has_bfloat16
from fsbench.core import process
from fsbench.core.errors import UsageError
from fsbench.core.seeding import words
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, ImageSpec
from fsbench.data import DataRoots, load_target
from fsbench.data.images import crop_centres
from protocols.base import Inputs
from protocols.episodic import linear


@pytest.mark.parametrize(("gpus", "name", "expected"), read_cases("backbones")["devices"])
def test_devices_by_name(
    gpus: int, name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """expected: empty if there is no such device."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    if expected:
        assert process.resolve_device(name) == expected
        return
    with pytest.raises(UsageError, match=f"device '{name}' is not available") as caught:
        process.resolve_device(name)
    assert "cpu" in caught.value.fix


def test_features_in_float32_are_those_of_float64(device: str) -> None:
    """Without TF32 and autocast, which the host program chose."""
    backbone = load_backbone("fsbench/toy_resnet", random_init=0)
    pixels = words(4 * 3 * 32 * 32, "pixels").astype(np.uint8).reshape(4, 3, 32, 32)
    images = backbone.normalised(torch.from_numpy(pixels)).double()
    exact = copy.deepcopy(backbone.module).double()(images).numpy()
    host = torch.autocast(torch.device(device).type, torch.bfloat16)
    with float32_precision("tf32"), host:
        features = compute_features(backbone.on(device), pixels, device)
    assert np.abs(features - exact).max() <= 1e-5 * np.abs(exact).max()


def test_features_in_bfloat16_change_few_predictions(
    device: str, record_property: Callable[[str, object], None]
) -> None:
    if not has_bfloat16(device):
        pytest.skip(f"{device} has no bfloat16 units")
    dataset = load_target("toy_scan", DataRoots())
    spec = EpisodicSpec(episode=EpisodeSpec(k_shot=5), image=ImageSpec(input_size=32))
    n = len(dataset)
    pixels = crop_centres(map(dataset.image, range(n)), spec.image, n)
    predicted = []
    for dtype in ("fp32", "bf16"):
        features = feature_spec(dtype=dtype)
        backbone = load_backbone("fsbench/toy_resnet", random_init=0, features=features)
        rows = compute_features(backbone.on(device), pixels, device)
        records = linear.evaluate_block(Inputs(None, dataset, rows, device), spec, 0)
        predicted.append(records.predicted)
    share = float(np.mean(predicted[0] != predicted[1]))
    record_property("share of predictions that change", share)
    assert 0 < share <= 0.05
