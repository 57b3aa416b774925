"""Arrays on disk whose room is taken before they are filled."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike


def create(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> np.memmap:
    """A new .npy file mapped into memory, zero. Raises OSError when the disk has no room for it.

    A mapped file without blocks of its own would end the process with SIGBUS on a full disk.
    """
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array
