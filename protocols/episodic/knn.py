"""Episodic protocol `knn`: the k nearest support images vote, in Euclidean distance.

Source: k = 5 as in SEAL's k-NN probes (protocol.md 5) and scikit-learn. A vote counts by the
inverse of its distance, since with so few shots plain votes are often tied; at one shot it is the
nearest neighbour. Fewer support images than k all vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fsbench.core.specs import FittedSpec
from protocols.heads.fitted import make_protocol, one_hot_labels

if TYPE_CHECKING:
    from torch import Tensor

    from protocols.heads.fitted import Classifier

ADAPTATION = "knn"
CLOSEST = 1e-100
"""Distance below which an image counts as met again; its vote outweighs all others."""


class KnnSettings(FittedSpec):
    """weights: scikit-learn's words; uniform gives tied votes to the class drawn first."""

    k: int = Field(5, ge=1)
    weights: Literal["distance", "uniform"] = "distance"


def fit(settings: KnnSettings, support: Tensor) -> Classifier:
    import torch

    known, labels = support.flatten(1, 2), one_hot_labels(support)
    k = min(settings.k, len(labels))

    def classify(images: Tensor) -> Tensor:
        distance, nearest = torch.cdist(images, known).topk(k, largest=False)
        uniform = settings.weights == "uniform"
        votes = torch.ones_like(distance) if uniform else 1 / distance.clamp_min(CLOSEST)
        return torch.einsum("emk,emkc->emc", votes, labels[nearest])

    return classify


block_size, evaluate_block = make_protocol(fit)
