"""Episodic head `cosine`: the class whose mean feature has the largest cosine with the image.

Source: Classifier-Baseline (Chen et al. 2021, "Meta-Baseline", section 3.1): cosine similarity to
the mean of the raw support features, nothing is trained. With one shot it is the cosine classifier
of Tian et al. 2020 ("Rethinking Few-Shot Image Classification", eval/meta_eval.py).
"""

from typing import TYPE_CHECKING, ClassVar

from fsbench.core.specs import FittedSpec
from protocols.heads.fitted import LinearClassifier, make_protocol

if TYPE_CHECKING:
    from torch import Tensor

ADAPTATION = "cosine"


class CosineSettings(FittedSpec):
    """normalize=l2: mean of unit vectors instead of mean of features."""

    SCALE_FREE: ClassVar = True


def fit(settings: CosineSettings, support: "Tensor") -> LinearClassifier:
    """Return scores equal to the cosine times the length of the image, equal for all classes."""
    from torch.nn.functional import normalize

    directions = normalize(support.mean(dim=2), dim=-1)
    return LinearClassifier(directions.mT, directions.new_zeros(directions.shape[:2]))


block_size, evaluate_block = make_protocol(fit)
