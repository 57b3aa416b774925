"""A backbone gives the same features for the same images, or is refused with the reason."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torchvision.ops import stochastic_depth

import fsbench
from fsbench.core.errors import CheckpointError

STATED: dict[str, Any] = {"input_size": 16, "mean": "imagenet", "std": "imagenet", "pool": "avg"}


class Stage(nn.Module):
    """A convolution and what a class does with its maps, in eval mode too."""

    def __init__(self, act: Any) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 8, 3), act

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.act(self.conv(x))
        return maps


class Draws(nn.Module):
    """A layer that always draws."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "dropout":
            return dropout(x, 0.5, training=True)
        if self.kind == "stochastic depth":
            return stochastic_depth(x, 0.1, "row", training=True) + x
        if self.kind == "mask":
            keep = torch.rand(len(x), 1, *x.shape[2:]) > 0.75
            return x * keep
        return x + torch.randn_like(x)


@pytest.mark.parametrize("kind", ["dropout", "stochastic depth", "mask", "noise"])
def test_a_network_that_draws_random_numbers_is_refused(kind: str) -> None:
    with pytest.raises(CheckpointError, match="random numbers enter its forward pass") as caught:
        fsbench.Backbone.from_module(Stage(Draws(kind)), name="net", **STATED)
    assert "module:net" in caught.value.message


def test_draws_that_the_eval_mode_switches_off_are_no_fault() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout(0.5), nn.BatchNorm2d(8)).train()
    backbone = fsbench.Backbone.from_module(net, name="net", **STATED)
    images = torch.rand(2, 3, 16, 16)
    assert torch.equal(backbone.features(images), backbone.features(images))


def test_the_check_leaves_the_random_numbers_of_the_host_program_alone() -> None:
    net = nn.Sequential(Stage(Draws("noise")), nn.Flatten())
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with pytest.raises(CheckpointError):
        fsbench.Backbone.from_module(net, name="net", **{**STATED, "pool": "native"})
    assert torch.equal(torch.rand(3), expected)
