"""What an epoch has seen so far, as sums."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fsbench.core.distributed import ALONE, Ranks


class Tally:
    """Sums of an epoch's training batches, each as it was before its step, over all ranks.

    A batch waits on the device until somebody asks, so that no step has to wait for a GPU.
    """

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks
        self.reset()

    def reset(self) -> None:
        self._loss = self._right = 0.0
        self._images = 0
        self._unread: list[tuple[Tensor, Tensor, int]] = []

    def add(self, loss: Tensor, right: Tensor, images: int, of: int) -> None:
        """The mean loss of a batch, its right answers (nan: not measured) and its images.

        Every rank adds its own part `of` the step's images and sees the sums, so that all of them
        decide alike.
        """
        if self.ranks.size > 1:
            seen = torch.stack([loss.float() * images, right.float()])
            self.ranks.sum([seen])
            loss, right, images = seen[0], seen[1], 1
        self._unread.append((loss, right, images))
        self._images += of

    def _read(self) -> None:
        """Wait for the device."""
        for loss, right, images in self._unread:
            self._loss += loss.item() * images
            self._right += right.item()
        self._unread.clear()

    @property
    def finite(self) -> bool:
        """Whether the loss is."""
        self._read()
        return math.isfinite(self._loss)

    def means(self) -> tuple[float, float | None]:
        """Loss and training accuracy (fraction; None: not measured)."""
        self._read()
        measured = math.isfinite(self._right)
        return self._loss / self._images, self._right / self._images if measured else None

    def sums(self) -> Tensor:
        """Loss times images, right answers, images, shape (3,) float64, for a checkpoint."""
        self._read()
        return torch.tensor([self._loss, self._right, self._images], dtype=torch.float64)

    def load(self, sums: Tensor) -> None:
        """Go on from these sums."""
        self.reset()
        self._loss, self._right, images = sums.tolist()
        self._images = int(images)
