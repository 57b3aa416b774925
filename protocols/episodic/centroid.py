"""Episodic head `centroid`: the class with the nearest mean feature, in Euclidean distance.

Source: prototypical networks without their training (Snell et al., NeurIPS 2017, eq. 1 and 2,
https://arxiv.org/abs/1703.05175); the nearest class mean of Mensink et al. (TPAMI 2013). Raw
features.
"""

from typing import TYPE_CHECKING, ClassVar

from fsbench.core.specs import FittedSpec
from protocols.heads.fitted import LinearClassifier, make_protocol

if TYPE_CHECKING:
    from torch import Tensor

ADAPTATION = "centroid"


class CentroidSettings(FittedSpec):
    """No setting but `normalize`."""

    SCALE_FREE: ClassVar = True


def fit(settings: CentroidSettings, support: "Tensor") -> LinearClassifier:
    return nearest_centroid(support.mean(dim=2))


def nearest_centroid(centroids: "Tensor") -> LinearClassifier:
    """Return scores equal to minus the squared distance to each centroid (E, n_way, D), up to the
    squared length of the image, which is the same for all classes."""
    return LinearClassifier(2 * centroids.mT, -centroids.square().sum(dim=2))


block_size, evaluate_block = make_protocol(fit)
