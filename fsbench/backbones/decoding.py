"""Blocks of pixels, decoded by threads while the network works on the block before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from fsbench.data.base import TargetDataset
from fsbench.data.images import centre
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

    Pixels of the centre crop, or of a random view, in memory channels last. Block b holds the
    images b * size ... of the whole data set, and black ones where they end, so a block never
    depends on where a run began. Raises DataError naming a corrupt image.
    """
    threads = max(1, workers)
    side, part = image.input_size, -(-size // threads)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[range, Pixels, list[Future[None]]]] = deque()
        for start in range(first * size, len(dataset), size):
            indices = range(start, min(start + size, len(dataset)))
            pixels = np.zeros((size, side, side, 3), dtype=np.uint8).transpose(0, 3, 1, 2)
            tasks = [
                pool.submit(
                    _fill, pixels[i : i + part], dataset, image, indices[i : i + part], view
                )
                for i in range(0, len(indices), part)
            ]
            waiting.append((indices, pixels, tasks))
            if len(waiting) > AHEAD:
                yield _block(*waiting.popleft())
        while waiting:
            yield _block(*waiting.popleft())


def _fill(
    pixels: Pixels, dataset: TargetDataset, image: ImageSpec, indices: range, view: View | None
) -> None:
    for row, index in zip(pixels, indices, strict=False):
        row[:] = _pixels(dataset, image, index, view)


def _pixels(dataset: TargetDataset, image: ImageSpec, index: int, view: View | None) -> Pixels:
    if view is None:
        return centre(dataset.image(index), image)
    return view.pixels(dataset.image(index), image, dataset.name, dataset.canonical_ids[index])


def _block(indices: range, pixels: Pixels, tasks: list[Future[None]]) -> tuple[int, int, Pixels]:
    for task in tasks:
        task.result()
    return indices.start, len(indices), pixels
