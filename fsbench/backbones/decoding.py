"""Blocks of pixels, decoded by threads while the network works on the block before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from fsbench.data.base import TargetDataset
from fsbench.data.images import to_array
from fsbench.data.views import View
from fsbench.specs import ImageSpec

Pixels = NDArray[np.uint8]

AHEAD = 2
"""Blocks decoded in advance."""


def blocks(
    dataset: TargetDataset,
    image: ImageSpec,
    size: int,
    first: int,
    workers: int,
    view: View | None = None,
) -> Iterator[tuple[int, int, Pixels]]:
    """(index of its first image, images in it, pixels (size, 3, s, s)) from block `first` on.

    Pixels of the centre crop, or of a random view. Block b holds the images b * size ... of the
    whole data set, and black ones where they end, so a block never depends on where a run began.
    Raises DataError naming a corrupt image.
    """
    starts = range(first * size, len(dataset), size)
    with ThreadPoolExecutor(max(1, workers)) as pool:
        waiting: deque[tuple[int, list[Future[Pixels]]]] = deque()
        for start in starts:
            indices = range(start, min(start + size, len(dataset)))
            waiting.append(
                (start, [pool.submit(_pixels, dataset, image, index, view) for index in indices])
            )
            if len(waiting) > AHEAD:
                yield _block(*waiting.popleft(), size)
        while waiting:
            yield _block(*waiting.popleft(), size)


def _pixels(dataset: TargetDataset, image: ImageSpec, index: int, view: View | None) -> Pixels:
    if view is None:
        return to_array(dataset.image(index), image)
    return view.pixels(dataset.image(index), image, dataset.name, dataset.canonical_ids[index])


def _block(start: int, images: list[Future[Pixels]], size: int) -> tuple[int, int, Pixels]:
    found = [image.result() for image in images]
    pixels = np.zeros((size, *found[0].shape), dtype=np.uint8)
    pixels[: len(found)] = found
    return start, len(found), pixels
