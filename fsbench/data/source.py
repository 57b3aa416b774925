"""A pretraining source in memory: uint8 arrays, memory-mapped from the cache (protocol.md 2)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fsbench.core.schema import DatasetFacts, Flag

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
"""What SEAL and LLF normalise TinyImageNet with, on pixels in [0, 1]."""


@dataclass(frozen=True, eq=False)
class Split:
    """images (N, 3, s, s) uint8, C-contiguous, maybe memory-mapped; labels (N,) int64."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class SourceDataset:
    """Images to pretrain on.

    Labels index facts.classes; mean and std are RGB, on pixels in [0, 1]; fingerprint: sha-256 over
    the pixels, labels and class names of both splits.
    """

    name: str
    facts: DatasetFacts
    train: Split
    val: Split
    n_classes: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    fingerprint: str
    flags: frozenset[Flag] = field(default_factory=frozenset)
