"""What an evaluation protocol is given, and what an episodic one must define."""

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

    features (N, D) float32: of every image, in data set order; backbone may be None for protocols
    that need features only; device: where the protocol computes ("cpu", "cuda", ...); halvings: of
    what shares a forward pass, because memory is too small (protocols/heads/execution.py).
    """

    backbone: Backbone | None
    dataset: TargetDataset
    features: NDArray[np.float32]
    device: str = "cpu"
    halvings: int = 0


class EpisodicProtocol(Protocol):
    """A file `protocols/episodic/<adaptation>.py`.

    Episodes come in blocks on absolute indices, always whole, because episodes never end: block b
    of size B holds episodes b*B .. (b+1)*B - 1, and who wants fewer drops the rest. So the bits of
    an episode depend on no number of episodes, shard, order or resume (design.md 5).
    """

    ADAPTATION: str

    @staticmethod
    def block_size(spec: EpisodicSpec, dim: int) -> int:
        """Episodes a block: a function of the shapes alone, never of free memory."""

    @staticmethod
    def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
        """Outcomes of the episodes of one block, in index order."""
