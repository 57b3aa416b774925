"""Inputs of an evaluation protocol, and the interface of an episodic head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

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

    backbone: Backbone | None
    dataset: TargetDataset
    features: NDArray[np.float32]
    device: str = "cpu"
    halvings: int = 0


class EpisodicProtocol(Protocol):
    """Interface of a file `protocols/episodic/<head>.py`.

    Episodes come in whole blocks on absolute indices: block b of size B holds episodes
    b*B .. (b+1)*B - 1, and a caller who needs fewer drops the rest. The bits of an episode
    therefore depend on no number of episodes, shard, order or resume.
    """

    ADAPTATION: str

    @staticmethod
    def block_size(spec: EpisodicSpec, dim: int) -> int:
        """Return the number of episodes per block, a function of shapes alone, never of memory."""

    @staticmethod
    def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
        """Evaluate the episodes of one block; records in index order."""
