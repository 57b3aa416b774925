"""Random crops and flips of batches, by named streams.

Random numbers are drawn on the CPU, so they are the same on every device.
"""

from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fsbench.core.seeding import Name, torch_generator

Images = TypeVar("Images", Tensor, NDArray[np.uint8])
Augmentation = Literal["crop_flip", "resize_crop_flip", "flip", "none"]
PAD = 4
"""Zero pixels around an image before the random crop (SEAL: RandomCrop(64, padding=4))."""
ENLARGED = 248 / 224
"""Enlargement by `resize_crop_flip` before the crop (reinitialization study)."""


def augment(
    images: Tensor,
    kind: Augmentation,
    names: tuple[Name, ...],
    first: int = 0,
    of: int | None = None,
    side: int | None = None,
) -> Tensor:
    """Augment images (B, 3, s, s) uint8 with the stream `names`: uint8, or float32 in 0..255.

    Windows of `side` px are cropped out of the images, which are padded or enlarged first if side
    is None: anywhere, for `flip` and `none` in the centre; `none` flips none. The images may be the
    rows from `first` on of a batch of `of` images; draws belong to rows.
    """
    if side is None and kind != "none":
        side = images.shape[-1]
        images = enlarge(images) if kind == "resize_crop_flip" else pad(images)
    if side is None or kind == "none":
        return crop_centre(images, side or images.shape[-1])
    offsets, flip = draw_crops(kind, of or len(images), images.shape[-1] - side, names)
    rows = slice(first, first + len(images))
    return gather_windows(images, offsets[rows], flip[rows], side)


def pad(images: Tensor) -> Tensor:
    """Put PAD zero pixels around images (B, 3, s, s)."""
    return functional.pad(images, (PAD, PAD, PAD, PAD))


def enlarge(images: Tensor) -> Tensor:
    """Enlarge images (B, 3, s, s), bilinear, from 224 to 248 px: float32 in 0..255."""
    side = round(images.shape[-1] * ENLARGED)
    return functional.interpolate(images.float(), side, mode="bilinear")


def draw_crops(
    kind: Augmentation, n: int, margin: int, names: tuple[Name, ...]
) -> tuple[Tensor, Tensor]:
    """Draw crop offsets (n, 2) in 0..margin, or the centre for `flip`, and flips (n,)."""
    numbers = torch.rand(n, 3, generator=torch_generator(*names))
    offsets = (numbers[:, :2] * (margin + 1)).long()
    if kind == "flip":
        offsets.fill_(margin // 2)
    return offsets, numbers[:, 2] < 0.5


def crop_centre(images: Images, side: int) -> Images:
    """Return the centres of side x side px of images (..., s, s), as a view."""
    start = (images.shape[-1] - side) // 2
    return images[..., start : start + side, start : start + side]


def gather_windows(images: Tensor, offsets: Tensor, flip: Tensor, side: int) -> Tensor:
    """Copy a window of every image, flipped or not; offsets (B, 2) and flip (B,) are on the CPU."""
    n, channels, height, width = images.shape
    planes = torch.arange(n * channels).view(n, channels, 1) * (height * width)
    rows = (offsets[:, :1] + torch.arange(side)) * width + offsets[:, 1:]
    starts, flipped = (planes + rows[:, None]).flatten(), flip.nonzero()[:, 0]
    indices = copy_async(torch.cat([starts, flipped]), images.device)
    starts, flipped = torch.split(indices, [len(starts), len(flipped)])
    runs = images.reshape(-1).unfold(0, side, 1)  # a view: all runs of `side` pixels
    windows = runs.index_select(0, starts).view(n, channels, side, side)
    windows[flipped] = windows[flipped].flip(3)
    return windows


def copy_async(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor of the CPU to a device, from pinned memory to a GPU: nobody waits."""
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)
