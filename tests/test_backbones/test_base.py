"""Backbones: the hash of their weights, and features that are the same each time."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torchvision.ops import stochastic_depth

import fsbench
from fsbench.backbones.base import check_finite, weights_hash
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import CheckpointError
from fsbench.core.seeding import stream

Weights = dict[str, Tensor]


@pytest.fixture
def weights() -> Weights:
    with stream("weights"):
        return load_architecture("toy_resnet").build(5, 2).state_dict()


def test_the_definition_by_hand() -> None:
    """Sorted names; dtype, shape and little-endian bytes of each."""
    state = {"b": torch.tensor([1, 2], dtype=torch.int64), "a": torch.tensor(0.5)}
    text = b"a\0float32\0()\0" + b"\x00\x00\x00\x3f"
    text += b"b\0int64\0(2,)\0" + (1).to_bytes(8, "little") + (2).to_bytes(8, "little")
    assert weights_hash(state) == hashlib.sha256(text).hexdigest()


def turn(weights: Weights) -> Weights:
    """Other order and memory layout."""
    return {n: t.mT.contiguous().mT if t.ndim > 1 else t for n, t in reversed(weights.items())}


@pytest.mark.parametrize(
    ("change", "is_equal"),
    [
        (turn, True),
        (lambda w: {**w, "fc.weight": w["fc.weight"] + 1}, True),
        (lambda w: {n: t for n, t in w.items() if "fc" not in n}, True),
        (lambda w: {**w, "bn1.num_batches_tracked": torch.tensor(7)}, True),
        (lambda w: {**w, "bn1.weight": w["bn1.weight"] + 1}, False),
        (lambda w: {**w, "fc_norm.weight": torch.ones(1)}, False),  # only begins like the head
    ],
)
def test_all_but_the_head_and_the_batch_counters_count(
    change: Callable[[Weights], Weights], is_equal: bool, weights: Weights
) -> None:
    assert (weights_hash(change(weights), ("fc",)) == weights_hash(weights, ("fc",))) == is_equal


def test_weights_that_are_not_finite_are_named(weights: Weights) -> None:
    check_finite(weights, "good.pth")
    weights["layer2.0.bn1.running_var"][0] = float("nan")
    with pytest.raises(CheckpointError, match=r"bad\.pth.*layer2\.0\.bn1\.running_var"):
        check_finite(weights, "bad.pth")


STATED: dict[str, Any] = {"input_size": 16, "mean": "imagenet", "std": "imagenet", "pool": "avg"}
DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda x: dropout(x, 0.5, training=True),
    "stochastic depth": lambda x: stochastic_depth(x, 0.1, "row", training=True) + x,
    "mask": lambda x: x * (torch.rand(len(x), 1, *x.shape[2:]) > 0.75),
    "noise": lambda x: x + torch.randn_like(x),
}


class Stage(nn.Module):
    """A convolution and what a class does with its maps, in eval mode too."""

    def __init__(self, act: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 8, 3), act

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.conv(x))


@pytest.mark.parametrize("kind", DRAWS)
def test_a_network_that_draws_random_numbers_is_refused(kind: str) -> None:
    """The random numbers of the host program stay as they are."""
    torch.manual_seed(5)
    expected = torch.rand(3)
    net = Stage(DRAWS[kind])
    torch.manual_seed(5)
    with pytest.raises(CheckpointError, match="random numbers enter its forward pass") as caught:
        fsbench.Backbone.from_module(net, name="net", **STATED)
    assert "module:net" in caught.value.message
    assert torch.equal(torch.rand(3), expected)


def test_draws_that_the_eval_mode_switches_off_are_no_fault() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout(0.5), nn.BatchNorm2d(8)).train()
    backbone = fsbench.Backbone.from_module(net, name="net", **STATED)
    images = torch.rand(2, 3, 16, 16)
    assert torch.equal(backbone.features(images), backbone.features(images))
