"""Episodic head `ridge`: least squares on the labels with an L2 penalty, in closed form.

Targets are 1 for the class and -1 for the others, the intercept is not penalised: scikit-learn's
RidgeClassifier, whose default strength is used. As a few-shot head: Bertinetto et al. 2019 (R2-D2),
which also solves the system of the size of the support. Features are scaled to length 1: the
penalty has a fixed strength, so raw features of another scale would be penalised more or less.
"""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fsbench.core.specs import FittedSpec
from protocols.heads.fitted import LinearClassifier, make_protocol, one_hot_labels

if TYPE_CHECKING:
    from torch import Tensor

ADAPTATION = "ridge"


class RidgeSettings(FittedSpec):
    """lam: weight of the squared norm of the weights against the sum of squared errors."""

    normalize: Literal["none", "l2"] = "l2"
    lam: float = Field(1.0, gt=0, description="scikit-learn's default alpha")


def fit(settings: RidgeSettings, support: "Tensor") -> LinearClassifier:
    import torch

    images, targets = support.flatten(1, 2), 2 * one_hot_labels(support) - 1
    mean, intercept = images.mean(dim=1, keepdim=True), targets.mean(dim=0)
    centred = images - mean
    system = centred @ centred.mT + settings.lam * torch.eye(len(targets), dtype=support.dtype)
    factor, _ = torch.linalg.cholesky_ex(system)
    weight = centred.mT @ torch.cholesky_solve(targets.expand(len(images), -1, -1), factor)
    return LinearClassifier(weight, intercept - (mean @ weight)[:, 0])


block_size, evaluate_block = make_protocol(fit)
