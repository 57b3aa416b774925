"""Decoding of blocks of images in threads, ahead of the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from fsbench.core.specs import ImageSpec
from fsbench.data.augmentation import RandomView
from fsbench.data.base import TargetDataset
from fsbench.data.images import crop_centres

Pixels = NDArray[np.uint8]

AHEAD = 2
"""Minimum number of blocks decoded in advance; the number of threads if that is larger."""


def blocks(
    dataset: TargetDataset,
    image: ImageSpec,
    size: int,
    first: int,
    workers: int,
    view: RandomView | None = None,
) -> Iterator[tuple[int, int, Pixels]]:
    """Yield (index of the first image, number of images, pixels (size, 3, s, s)) per block.

    Starts at block `first`. Pixels are the centre crop or a random view, channels last. Block b
    holds images b * size ... of the data set, padded with black images, so its content does not
    depend on where a run started. Each thread decodes a whole block: threads that share a block of
    small images would wait for each other. Raises DataError naming a corrupt image.
    """
    with ThreadPoolExecutor(max(1, workers)) as pool:
        waiting: deque[tuple[range, Future[Pixels]]] = deque()
        for start in range(first * size, len(dataset), size):
            indices = range(start, min(start + size, len(dataset)))
            waiting.append((indices, pool.submit(_block, dataset, image, size, indices, view)))
            if len(waiting) > max(AHEAD, workers):
                yield _decoded(*waiting.popleft())
        while waiting:
            yield _decoded(*waiting.popleft())


def _block(
    dataset: TargetDataset, image: ImageSpec, size: int, indices: range, view: RandomView | None
) -> Pixels:
    if view is None:
        return crop_centres(map(dataset.image, indices), image, size)
    side = image.input_size
    pixels = np.zeros((size, side, side, 3), dtype=np.uint8).transpose(0, 3, 1, 2)
    for row, index in zip(pixels, indices, strict=False):
        name = dataset.canonical_ids[index]
        row[:] = view.pixels(dataset.image(index), image, dataset.name, name)
    return pixels


def _decoded(indices: range, pixels: Future[Pixels]) -> tuple[int, int, Pixels]:
    return indices.start, len(indices), pixels.result()
