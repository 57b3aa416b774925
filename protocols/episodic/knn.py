"""Episodic head `knn`: vote of the k nearest support images, in Euclidean distance.

Source: k = 5 as in the k-NN probes of SEAL (section 5 of the paper) and scikit-learn's default. A
vote is weighted by the inverse of its distance, since plain votes are often tied with few shots;
with
one shot the head is the nearest neighbour. Fewer support images than k all vote.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fsbench.core.specs import FittedSpec
from protocols.heads.fitted import make_protocol, one_hot_labels

if TYPE_CHECKING:
    from torch import Tensor

    from protocols.heads.fitted import Classifier

ADAPTATION = "knn"
CLOSEST = 1e-100
"""Smallest distance that enters a weight: an identical image outweighs all others."""


class KnnSettings(FittedSpec):
    """k: voting images. weights: as in scikit-learn; with `uniform`, ties go to the first class."""

    SCALE_FREE: ClassVar = True

    k: int = Field(5, ge=1)
    weights: Literal["distance", "uniform"] = "distance"


def fit(settings: KnnSettings, support: "Tensor") -> "Classifier":
    import torch

    vectors, labels = support.flatten(1, 2), one_hot_labels(support)
    k = min(settings.k, len(labels))

    def classify(images: "Tensor") -> "Tensor":
        distance, nearest = torch.cdist(images, vectors).topk(k, largest=False)
        uniform = settings.weights == "uniform"
        votes = torch.ones_like(distance) if uniform else 1 / distance.clamp_min(CLOSEST)
        return torch.einsum("emk,emkc->emc", votes, labels[nearest])

    return classify


block_size, evaluate_block = make_protocol(fit)
