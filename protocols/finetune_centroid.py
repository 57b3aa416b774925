"""Episodic protocol `centroid`: the class whose mean feature is nearest, in Euclidean distance.

Source: prototypical networks without their training (Snell et al. 2017, eq. 1 and 2), the nearest
class mean of Mensink et al. 2013. On raw features, as `linear` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsbench.specs import FittedSpec
from protocols.fitted import protocol

if TYPE_CHECKING:
    from torch import Tensor

    from protocols.fitted import Classifier

ADAPTATION = "centroid"


class Settings(FittedSpec):
    """There is nothing to set but `normalize`."""


def fit(settings: Settings, support: Tensor) -> Classifier:
    return nearest(support.mean(dim=2))


def nearest(centroids: Tensor) -> Classifier:
    """Scores: minus the squared distance to each centroid (E, n_way, D)."""
    from torch import cdist

    return lambda images: -cdist(images, centroids).square()


block_size, evaluate_block = protocol(fit)
