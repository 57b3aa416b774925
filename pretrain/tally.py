"""What an epoch has seen so far, as sums on the run's device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pretrain.ranks import ALONE, Ranks


class Tally:
    """Sums of an epoch's training batches, each as it was before its step, over all ranks."""

    def __init__(self, device: torch.device, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks
        self.sums = torch.zeros(3, device=device)
        """Loss times images, right answers, images."""

    def reset(self) -> None:
        self.sums.zero_()

    def add(self, loss: Tensor, right: Tensor, images: int) -> None:
        """The mean loss of a batch, its right answers (nan: not measured) and its images.

        Every rank adds its own and sees the sums, so that all of them decide alike.
        """
        seen = torch.stack([loss.float() * images, right.float(), right.new_tensor(images)])
        self.ranks.sum([seen])
        self.sums += seen

    @property
    def finite(self) -> bool:
        """Whether the loss is; waits for a GPU."""
        return math.isfinite(self.sums[0])

    def means(self) -> tuple[float, float | None]:
        """Loss and training accuracy (fraction; None: not measured)."""
        loss, right, images = self.sums.tolist()
        return loss / images, right / images if math.isfinite(right) else None
