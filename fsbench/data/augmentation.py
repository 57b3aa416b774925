"""Random crops and flips of whole batches in memory, drawn from named streams.

Draws are made on the CPU and are therefore the same on every device.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from fsbench.core.seeding import Name, torch_generator

Augmentation = Literal["crop_flip", "resize_crop_flip", "flip", "none"]
PAD = 4
"""Zero pixels around an image before the random crop (SEAL: RandomCrop(64, padding=4))."""
ENLARGED = 248 / 224
"""How much larger `resize_crop_flip` makes an image before the crop (reinitialization study)."""


def augment(
    images: Tensor,
    kind: Augmentation,
    names: tuple[Name, ...],
    first: int = 0,
    of: int | None = None,
) -> Tensor:
    """images (B, 3, s, s) uint8 under the stream called `names`; uint8, or float32 in 0..255.

    The images may be the rows from `first` on of a batch of `of`: each gets the draws of its row.
    """
    if kind == "none":
        return images
    function = resize_crop_flip if kind == "resize_crop_flip" else crop_flip
    offsets, flip = draws(kind, of or len(images), images.shape[-1], names)
    rows = slice(first, first + len(images))
    return function(images, offsets[rows].to(images.device), flip[rows].to(images.device))


def draws(kind: Augmentation, n: int, side: int, names: tuple[Name, ...]) -> tuple[Tensor, Tensor]:
    """Crop offsets (n, 2) and flips (n,) of one batch of images of `side` px."""
    numbers = torch.rand(n, 3, generator=torch_generator(*names))
    margin = enlarged(side) - side if kind == "resize_crop_flip" else 2 * PAD
    offsets = (numbers[:, :2] * (margin + 1)).long()
    if kind == "flip":
        offsets.fill_(PAD)
    return offsets, numbers[:, 2] < 0.5


def crop_flip(images: Tensor, offsets: Tensor, flip: Tensor) -> Tensor:
    """Random crop of the zero-padded images and horizontal flip.

    images (B, 3, s, s) uint8; offsets (B, 2) rows and columns in 0..2 PAD; flip (B,) bool.
    """
    return windows(functional.pad(images, (PAD, PAD, PAD, PAD)), offsets, flip, images.shape[-1])


def resize_crop_flip(images: Tensor, offsets: Tensor, flip: Tensor) -> Tensor:
    """Random crop of the enlarged images (bilinear) and horizontal flip: float32 in 0..255.

    images (B, 3, s, s) uint8; offsets (B, 2) in 0..enlarged(s) - s; flip (B,) bool.
    """
    side = images.shape[-1]
    large = functional.interpolate(images.float(), enlarged(side), mode="bilinear")
    return windows(large, offsets, flip, side)


def enlarged(side: int) -> int:
    """Side (px) that a crop of `side` px is taken from: 248 for 224."""
    return round(side * ENLARGED)


def windows(images: Tensor, offsets: Tensor, flip: Tensor, side: int) -> Tensor:
    """A window of side x side px of every image, flipped or not, one gather for the whole batch."""
    n = len(images)
    rows = offsets[:, :1] + torch.arange(side, device=images.device)
    columns = torch.arange(side, device=images.device).expand(n, side)
    columns = torch.where(flip[:, None], side - 1 - columns, columns) + offsets[:, 1:]
    batch = torch.arange(n, device=images.device)[:, None, None]
    return images[batch, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
