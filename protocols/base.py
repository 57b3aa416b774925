"""Inputs of an evaluation protocol, and the interface of an episodic head."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.errors import CheckpointError, DataError
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec
from fsbench.data.base import TargetDataset

if TYPE_CHECKING:
    from fsbench.backbones.base import Backbone


@dataclass(frozen=True, eq=False)
class Inputs:
    """A frozen backbone on a target data set.

    features (N, D) float32: one row per image, in data set order; backbone: None for heads that
    need features only; device: "cpu", "cuda", ...; halvings: how often the number of episodes in
    one forward pass was halved because memory is too small (protocols/heads/execution.py).
    """

    backbone: "Backbone | None"
    dataset: TargetDataset
    features: NDArray[np.float32]
    device: str = "cpu"
    halvings: int = 0

    @property
    def feature_norm(self) -> float | None:
        """Mean L2 norm of the features; None for a head that reads images."""
        if self.features.shape[1] == 0:
            return None
        squares = np.einsum("nd,nd->n", self.features, self.features, dtype=np.float64)
        return float(np.sqrt(squares).mean())


class EpisodicProtocol(Protocol):
    """Interface of a file `protocols/episodic/<head>.py`.

    Episodes come in whole blocks on absolute indices: block b of size B holds episodes
    b*B .. (b+1)*B - 1, and a caller who needs fewer drops the rest. The bits of an episode
    therefore depend on no number of episodes, shard, order or resume.
    """

    ADAPTATION: str

    @staticmethod
    def block_size(spec: EpisodicSpec, dim: int, device: str = "cpu") -> int:
        """Return the number of episodes per block.

        It depends on shapes and on the kind of device, never on memory.
        """

    @staticmethod
    def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
        """Evaluate the episodes of one block; records in index order."""


ImageIndices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SplitFeatures:
    """One side of a split: features (N, D) and labels (N,) in 0..C-1."""

    x: Tensor
    y: Tensor

    def take(self, rows: Tensor) -> "SplitFeatures":
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
