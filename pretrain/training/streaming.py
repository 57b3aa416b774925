"""Streaming of a source that is too large for the memory of a GPU.

Worker processes read the images of the next steps from the memory-mapped file of decoded images
into pinned memory, while the GPU trains. Which images these are is drawn as for other sources, and
they are augmented on the GPU, so the batches are the same to the bit.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from fsbench.data.source import SourceDataset, Split

GPU_PART = 1 / 3
"""Part of a GPU's memory that a decoded source may take; a larger source is streamed."""
WORKERS = 4
"""Processes that read ahead, two batches each."""

Indices = NDArray[np.int64]


def count_bytes(source: SourceDataset) -> int:
    """Return the size of the decoded images for training and validation."""
    return source.train.images.nbytes + source.val.images.nbytes


def is_streamed(source: SourceDataset, device: torch.device) -> bool:
    """Return whether the source is too large to lie on the device; a CPU maps it from its file."""
    if device.type != "cuda":
        return False
    memory = torch.cuda.get_device_properties(device).total_memory
    return count_bytes(source) > GPU_PART * memory


def describe_memory(source: SourceDataset, device: torch.device) -> str:
    """Return where the images of a run on a GPU lie; "" on other devices."""
    if device.type != "cuda":
        return ""
    where = "streamed to" if is_streamed(source, device) else "on"
    return f"{count_bytes(source) / 1e9:.1f} GB of images {where} the GPU"


class RowReader(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Reader of indices, images and labels of some rows of a split; the workers run it."""

    def __init__(self, split: Split) -> None:
        self.split = split

    def __getitem__(self, rows: Indices) -> tuple[Tensor, Tensor, Tensor]:
        arrays = rows, self.split.images[rows], self.split.labels[rows]
        indices, images, labels = map(torch.from_numpy, arrays)
        return indices, images, labels


class RowStream:
    """Images and labels of a split on a device, read ahead where they are expected."""

    def __init__(self, split: Split, device: torch.device) -> None:
        self.reader, self.device = RowReader(split), device
        self._batches: Iterator[tuple[Tensor, Tensor, Tensor]] = iter(())
        self._next: tuple[Tensor, Tensor, Tensor] | None = None

    def expect(self, parts: Iterable[Indices]) -> None:
        """Read these rows in this order from now on, and no longer those expected before."""
        loader = DataLoader(
            self.reader,
            batch_size=None,
            sampler=parts,
            num_workers=WORKERS,
            pin_memory=self.device.type == "cuda",
            multiprocessing_context="fork",  # a spawned worker would copy the source
            generator=torch.Generator(),  # the global one belongs to the run
        )
        self._batches, self._next = iter(loader), None

    def take(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return images (B, 3, s, s) uint8 and labels (B,) of rows, whose indices are on the CPU.

        Rows that are not the next expected ones are read now.
        """
        if self._next is None:
            self._next = next(self._batches, None)
        if self._next is not None and torch.equal(self._next[0], rows):
            (_, images, labels), self._next = self._next, None
        else:
            _, images, labels = self.reader[rows.numpy()]
        images, labels = (t.to(self.device, non_blocking=True) for t in (images, labels))
        return images, labels
