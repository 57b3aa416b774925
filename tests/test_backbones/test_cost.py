"""Multiply-adds of features by hand, and the memory of an extraction."""

import mmap
import subprocess
import sys

import numpy as np
import pytest
from torch import Tensor, nn

from fsbench.backbones.base import Backbone
from fsbench.backbones.cost import count_macs
from fsbench.core.process import peak_memory, reset_peak_memory


class Tokens(nn.Module):
    """One layer of attention over the rows of an image, each a token of 3 x 8 = 24 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(24, 2, batch_first=True)

    def forward(self, images: Tensor) -> Tensor:
        rows = images[..., :8].permute(0, 2, 1, 3).flatten(2)
        return self.attention(rows, rows, rows, need_weights=False)[0].mean(1)


class Uncountable(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        if len(images) == 2 and images.shape[-1] == 16:
            raise RuntimeError("no formula")
        return images.flatten(1)[:, :64]


@pytest.mark.parametrize(
    ("module", "macs"),
    [
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten()), 14 * 14 * 8 * 27),
        (Tokens(), 4 * 16 * 24 * 24 + 2 * 16 * 16 * 24),  # projections; products of all tokens
        (nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten()), 0),
        (Uncountable(), None),
    ],
    ids=["convolution", "attention", "none", "unknown"],
)
def test_multiply_adds_are_those_by_hand(module: nn.Module, macs: int | None) -> None:
    size = 8 if isinstance(module, Uncountable) else 16
    backbone = Backbone.from_module(module, name="net", input_size=size, mean="half", std="half")
    assert count_macs(backbone, 16, "cpu") == macs


def test_peak_memory_starts_again() -> None:
    """Freed memory of earlier work is not that of an extraction."""
    reset_peak_memory("cpu")
    with mmap.mmap(-1, 2**27) as pages:  # the allocator may keep what an array had
        pages.write(bytes(2**27))
        peak = peak_memory()
    reset_peak_memory("cpu")
    if peak_memory() == peak:
        pytest.skip("this system cannot start it again")
    assert 0 < peak_memory() < peak - 2**26


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts memory by program")
def test_the_peak_of_a_process_is_not_that_of_the_one_that_started_it() -> None:
    numbers = np.ones(40 * 2**20)  # 320 MiB, all in use
    code = "from fsbench.core.process import peak_memory; print(peak_memory())"
    started = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert 2**20 < int(started) < numbers.nbytes < peak_memory()
