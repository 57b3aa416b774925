"""Episodic head `soft_kmeans`: centroids refined by all queries at once (transductive).

Source: Ren et al. 2018 ("Meta-Learning for Semi-Supervised Few-Shot Classification", 3.1.1): every
unlabelled image counts towards every class by the softmax of minus its squared distances to the
centroids, support images count by their label. Here the unlabelled images are the queries
themselves, which is what makes it transductive. One refinement, beyond which the paper saw no gain.
"""

from typing import TYPE_CHECKING

from pydantic import Field

from fsbench.core.specs import FittedSpec
from protocols.episodic.centroid import nearest_centroid
from protocols.heads.fitted import LinearClassifier, make_protocol

if TYPE_CHECKING:
    from torch import Tensor

ADAPTATION = "soft_kmeans"


class SoftKMeansSettings(FittedSpec):
    """steps: number of refinements."""

    transductive: bool = True
    steps: int = Field(1, ge=1)


def fit(settings: SoftKMeansSettings, support: "Tensor", query: "Tensor") -> LinearClassifier:
    sums, k_shot = support.sum(dim=2), support.shape[2]
    centroids = sums / k_shot
    for _ in range(settings.steps):
        share = nearest_centroid(centroids)(query).softmax(dim=2)
        total = share.sum(dim=1)[..., None] + k_shot
        centroids = (sums + share.mT @ query) / total
    return nearest_centroid(centroids)


block_size, evaluate_block = make_protocol(fit)
