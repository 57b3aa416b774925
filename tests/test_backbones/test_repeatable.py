"""A backbone gives the same features for the same images, or is refused with the reason."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torchvision.ops import stochastic_depth

import fsbench
from fsbench.core.errors import CheckpointError

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
