"""Random views of images, beside torchvision's transforms."""

import math

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import RandomResizedCrop, functional

from fsbench.core.seeding import stream, uniforms
from fsbench.core.specs import ImageSpec
from fsbench.data.augmentation import ATTEMPTS, RandomView, crop_box

SPEC = ImageSpec(input_size=32)
SIDE = SPEC.resize


def picture() -> Image.Image:
    pixels = (uniforms((40, 50, 3), "picture") * 256).astype(np.uint8)
    return Image.fromarray(pixels)


def boxes(n: int) -> np.ndarray:
    return np.array(
        [crop_box(57, uniforms((2 * ATTEMPTS + 2,), "b", i).tolist()) for i in range(n)]
    )


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_pixels_are_those_of_torchvisions_operations(number: int) -> None:
    draws = uniforms((2 * ATTEMPTS + 3,), "view", 5, "d", "a/b", number).tolist()
    left, top, right, bottom = crop_box(SIDE, draws[:-1])
    small = functional.resize(picture(), [SIDE, SIDE])
    expected = functional.resized_crop(small, top, left, bottom - top, right - left, [32, 32])
    if draws[-1] < 0.5:
        expected = functional.hflip(expected)
    pixels = RandomView(5, number).pixels(picture(), SPEC, "d", "a/b")
    np.testing.assert_array_equal(pixels, np.asarray(expected).transpose(2, 0, 1))
    assert pixels.shape == (3, 32, 32)


def test_crops_are_distributed_as_torchvisions() -> None:
    n, image = 1500, torch.zeros(3, 57, 57)
    with stream("reference"):
        crops = [RandomResizedCrop.get_params(image, [0.08, 1], [3 / 4, 4 / 3]) for _ in range(n)]
    top, left, height, width = np.array(crops).T
    expected = np.stack([left, top, left + width, top + height], axis=1).astype(float)
    drawn = boxes(n).astype(float)
    for a, b in ((drawn, expected), (drawn**2, expected**2)):
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / n)
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4 * error).all()
    area = [(b[2] - b[0]) * (b[3] - b[1]) / 57**2 for b in (drawn.T, expected.T)]
    assert abs(area[0].mean() - area[1].mean()) < 4 * math.sqrt(2 * area[1].var() / n)


def test_crops_by_hand() -> None:
    middle = [0.0] * (2 * ATTEMPTS + 2)
    middle[:2] = [0.0, 0.5]  # 8 % of the area, as wide as high
    assert crop_box(100, middle) == (0, 0, 28, 28)
    middle[-2:] = [0.999, 0.5]
    assert crop_box(100, middle) == (72, 36, 100, 64)
    middle[:2] = [0.99, 0.99]  # too wide: the next attempt counts
    assert crop_box(100, middle)[2] - crop_box(100, middle)[0] == round(math.sqrt(800 * 0.75))
    assert crop_box(100, [0.99] * (2 * ATTEMPTS + 2)) == (0, 0, 100, 100)


def test_a_view_follows_from_every_name_and_nothing_else() -> None:
    names = [(5, 1, "d", "a/b"), (6, 1, "d", "a/b"), (5, 2, "d", "a/b"), (5, 1, "e", "a/b"),
             (5, 1, "d", "a/c")]  # fmt: skip
    views = []
    for _ in range(2):
        views.append(
            {RandomView(s, n).pixels(picture(), SPEC, d, i).tobytes() for s, n, d, i in names}
        )
        torch.rand(3)
    assert views[0] == views[1]
    assert len(views[0]) == len(names)
