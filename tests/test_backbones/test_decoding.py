"""Blocks of pixels, and what the network is given for them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureRequest, blocks
from fsbench.core.specs import ImageSpec
from fsbench.data.augmentation import RandomView
from fsbench.data.base import TargetDataset
from fsbench.data.images import to_array

Pictures = Callable[..., TargetDataset]
SMALL = ImageSpec(input_size=16)


@pytest.mark.parametrize("view", [None, RandomView(0, 3)])
@pytest.mark.parametrize(("size", "workers"), [(2, 0), (2, 3), (8, 8), (21, 4)])
@pytest.mark.parametrize("first", [0, 1])
def test_blocks_hold_their_images_and_black_ones_behind_them(
    first: int,
    size: int,
    workers: int,
    view: RandomView | None,
    pictures: Pictures,
    backbone: Backbone,
) -> None:
    """With fewer threads than blocks and with more; without a copy for the network."""
    dataset = pictures(2 * size + size // 2 + 1)
    request = FeatureRequest(backbone, dataset, SMALL, view=view)
    decoded = list(blocks(request, size, first, workers))
    starts = range(first * size, len(dataset), size)
    assert [b[:2] for b in decoded] == [(i, min(size, len(dataset) - i)) for i in starts]
    for start, n, pixels in decoded:
        assert (pixels.shape, pixels.dtype) == ((size, 3, 16, 16), np.uint8)
        assert torch.from_numpy(pixels).is_contiguous(memory_format=torch.channels_last)
        for i in range(n):
            image, name = dataset.image(start + i), dataset.canonical_ids[start + i]
            plain = (
                view.pixels(image, SMALL, dataset.name, name) if view else to_array(image, SMALL)
            )
            np.testing.assert_array_equal(pixels[i], plain)
        assert not pixels[n:].any()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_normalising_is_that_of_every_pixel_alone(
    layout: torch.memory_format, backbone: Backbone
) -> None:
    """Bit for bit, and in the layout of the images."""
    every = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(2, 3, 16, 16)
    images = every.contiguous(memory_format=layout)
    for pixels in (images, images.double() / 255):
        before, normalised = pixels.clone(), backbone.normalised(pixels)
        assert normalised.is_contiguous(memory_format=layout)
        assert torch.equal(pixels, before)
        for c, (mean, std) in enumerate(zip(backbone.facts.mean, backbone.facts.std, strict=True)):
            x = pixels[:, c].float() / 255 if pixels is images else pixels[:, c]
            assert torch.equal(normalised[:, c], (x - x.new_tensor(mean)) / x.new_tensor(std))
