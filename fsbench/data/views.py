"""Random views of single images, what a probe with augmentation trains on (protocol.md 4).

Source: the transform of natural images in LLF, whose code SEAL's descends from: resize to a square,
torchvision's RandomResizedCrop with its defaults, flip. Draws follow from names alone, so a view is
the same in any order, batch or process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.seeding import uniforms
from fsbench.core.specs import ImageSpec
from fsbench.data.images import channels_first, square

SCALE = (0.08, 1.0)
"""Area of the crop, as part of the image."""
RATIO = (3 / 4, 4 / 3)
"""Width over height of the crop; its logarithm is uniform."""
ATTEMPTS = 10
"""Draws of a crop that fits; the whole square where none does."""

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class View:
    """View `number` of every image of a data set, under `seed`."""

    seed: int
    number: int

    def pixels(
        self, image: Image.Image, spec: ImageSpec, dataset: str, canonical_id: str
    ) -> NDArray[np.uint8]:
        """uint8 (3, s, s) with s = spec.input_size; pixels are resampled bilinear, antialiased."""
        names = ("view", self.seed, dataset, canonical_id, self.number)
        *shape, mirrored = uniforms((2 * ATTEMPTS + 3,), *names).tolist()
        box = crop_box(spec.resize, shape)
        view = square(square(image, spec.resize).crop(box), spec.input_size)
        if mirrored < 0.5:
            view = view.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return channels_first(view)


def crop_box(side: int, draws: list[float]) -> Box:
    """Left, top, right and bottom (px) of a random crop of a square, as RandomResizedCrop draws it.

    draws: uniform in [0, 1), an area and a ratio for each attempt, then a column and a row.
    """
    low, high = (math.log(ratio) for ratio in RATIO)
    for attempt in range(ATTEMPTS):
        part, shape = draws[2 * attempt : 2 * attempt + 2]
        area = side * side * (SCALE[0] + (SCALE[1] - SCALE[0]) * part)
        ratio = math.exp(low + (high - low) * shape)
        width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < width <= side and 0 < height <= side:
            left = int(draws[-2] * (side - width + 1))
            top = int(draws[-1] * (side - height + 1))
            return left, top, left + width, top + height
    return 0, 0, side, side
