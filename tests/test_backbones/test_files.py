"""Checkpoint files through `load_backbone(FILE, arch=...)`: choices, strictness, messages.

tests/contracts/test_checkpoint_shapes.py loads files as training programs write them.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fsbench import backbones
from fsbench.backbones.networks import load_architecture
from fsbench.backbones.preprocessing import IMAGENET_MEAN, IMAGENET_STD
from fsbench.core.errors import CheckpointError
from fsbench.core.seeding import stream
from fsbench.core.specs import FeatureSpec

Weights = dict[str, Tensor]
Save = Callable[[Any], str]
ARCH = "fsbench/toy_resnet"


@pytest.fixture
def weights() -> Weights:
    with stream("file"):
        return load_architecture("toy_resnet").build(7).state_dict()


def hash_of(ref: str, **options: Any) -> str:
    return backbones.load_backbone(ref, arch=ARCH, **options).facts.weights_hash


REFUSED: dict[str, tuple[Callable[[Weights], Any], str]] = {
    "a prefix of some names": (
        lambda w: {("stage." + n if n.startswith("layer1") else n): t for n, t in w.items()},
        r"unexpected \d+: stage\.layer1"),
    "no tensors": (lambda w: {"epoch": 1, "net": {"deep": {"deeper": 1.0}}},
                   r"no weights where they are looked for.*epoch"),
    "another shape": (lambda w: {**w, "conv1.weight": torch.ones(8, 3, 7, 7)},
                      r"conv1\.weight is \(8, 3, 7, 7\), not \(8, 3, 3, 3\)"),
    "integers": (lambda w: {**w, "bn1.weight": torch.ones(8, dtype=torch.int64)},
                 r"bn1\.weight is torch\.int64"),
    "infinity": (lambda w: {**w, "conv1.weight": w["conv1.weight"] / 0},
                 r"weights\.pth.*NaN or infinity.*conv1\.weight"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_named(what: str, weights: Weights, save: Save) -> None:
    change, message = REFUSED[what]
    with pytest.raises(CheckpointError, match=message):
        hash_of(save(change(weights)))
    with pytest.raises(CheckpointError, match="no part 'ema'; it contains"):
        hash_of(save(change(weights)) + "::ema")


def test_missing_and_left_over_names_are_listed_up_to_ten(
    weights: Weights, save: Save, report: Any
) -> None:
    del weights["layer3.0.bn2.running_mean"]
    weights |= {f"projector.{i}.weight": torch.ones(1) for i in range(12)}
    with pytest.raises(CheckpointError) as caught:
        hash_of(save(weights), report=report)
    message = caught.value.message
    assert "missing 1: layer3.0.bn2.running_mean" in message
    assert "unexpected 12: projector.0.weight" in message
    assert "projector.9.weight and 2 more" in message
    assert "projector.10" not in message
    assert "toy_resnet: dropped head 2: fc.weight, fc.bias" in report.text


def test_the_control_of_a_file_has_none_of_its_weights(weights: Weights, save: Save) -> None:
    imagenet = FeatureSpec(mean=IMAGENET_MEAN, std=IMAGENET_STD)
    fresh = backbones.load_backbone(ARCH, random_init=5).facts
    control = backbones.load_backbone(save(weights), arch=ARCH, random_init=5, features=imagenet)
    assert control.facts.weights_hash == fresh.weights_hash
    assert control.facts.random_init == 5
