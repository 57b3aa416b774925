"""What an epoch has seen so far, as sums on the run's device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pretrain.ranks import ALONE, Ranks


class Tally:
    """Sums of an epoch's training batches, each as it was before its step, over all ranks."""

    def __init__(self, device: torch.device, ranks: Ranks = ALONE) -> None:
        self.ranks, self.images = ranks, 0
        self.loss, self.right = torch.zeros((), device=device), torch.zeros((), device=device)

    def reset(self) -> None:
        self.load(torch.zeros(3))

    def add(self, loss: Tensor, right: Tensor, images: int, of: int) -> None:
        """The mean loss of a batch, its right answers (nan: not measured) and its images.

        Every rank adds its own part `of` the step's images and sees the sums, so that all of them
        decide alike. Small steps feel every operation here; none of them waits for a GPU.
        """
        total = loss.float() * images
        if self.ranks.size > 1:
            seen = torch.stack([total, right.float()])
            self.ranks.sum([seen])
            total, right = seen.unbind()
        self.loss += total
        self.right += right
        self.images += of

    @property
    def finite(self) -> bool:
        """Whether the loss is; waits for a GPU."""
        return math.isfinite(self.loss)

    def means(self) -> tuple[float, float | None]:
        """Loss and training accuracy (fraction; None: not measured)."""
        loss, right = float(self.loss), float(self.right)
        return loss / self.images, right / self.images if math.isfinite(right) else None

    def sums(self) -> Tensor:
        """Loss times images, right answers, images, shape (3,), for a checkpoint."""
        return torch.stack([self.loss, self.right, self.loss.new_tensor(self.images)])

    def load(self, sums: Tensor) -> None:
        """Go on from these sums."""
        self.loss.copy_(sums[0])
        self.right.copy_(sums[1])
        self.images = int(sums[2])
