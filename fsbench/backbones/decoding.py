"""Blocks of pixels, decoded by threads while the network works on the block before."""

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
"""Blocks decoded in advance, at least; as many as threads where these are more."""


def blocks(
    dataset: TargetDataset,
    image: ImageSpec,
    size: int,
    first: int,
    workers: int,
    view: RandomView | None = None,
) -> Iterator[tuple[int, int, Pixels]]:
    """(index of its first image, images in it, pixels (size, 3, s, s)) from block `first` on.

    Pixels of the centre crop, or of a random view, in memory channels last. Block b holds the
    images b * size ... of the whole data set, and black ones where they end, so a block never
    depends on where a run began. One thread has a block for itself: two that share one would wait
    for each other, and the network for both, where images are small. Raises DataError naming a
    corrupt image.
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
