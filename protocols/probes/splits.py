"""Train and test features of a probe, validated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.errors import CheckpointError, DataError
from protocols.base import Inputs

ImageIndices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SplitFeatures:
    """One side of a split: features (N, D) and labels (N,) in 0..C-1."""

    x: Tensor
    y: Tensor

    def take(self, rows: Tensor) -> SplitFeatures:
        return SplitFeatures(self.x[rows], self.y[rows])


def split_features(
    inputs: Inputs, train_idx: ImageIndices, test_idx: ImageIndices
) -> tuple[SplitFeatures, SplitFeatures, int]:
    """Return train, test, and the number of classes C of the data set.

    Raise CheckpointError on non-finite features and DataError on an empty side of the split.
    """
    name = inputs.dataset.name
    if min(len(train_idx), len(test_idx)) == 0:
        raise DataError(
            f"{name} has {len(train_idx)} training and {len(test_idx)} test images, "
            "a probe needs both",
            fix="check the data set folder and its split",
        )
    classes, labels = np.unique(inputs.dataset.labels, return_inverse=True)
    train, test = (
        SplitFeatures(to_device(inputs, inputs.features[index]), to_device(inputs, labels[index]))
        for index in (train_idx, test_idx)
    )
    return train, test, len(classes)


def to_device(inputs: Inputs, values: NDArray[np.float32] | ImageIndices) -> Tensor:
    """Move features or labels to the device. Raise CheckpointError if not finite."""
    tensor = torch.from_numpy(values).to(inputs.device)
    if not torch.isfinite(tensor).all():
        raise CheckpointError(
            f"features of {inputs.dataset.name} hold NaN or infinity",
            fix="check the checkpoint: its weights or normalization statistics are broken",
        )
    return tensor
