"""Episodic head `logistic`: multinomial logistic regression by scikit-learn (L-BFGS).

Source: Tian et al. 2020 ("Rethinking Few-Shot Image Classification", eval/meta_eval.py): features
scaled to length 1, scikit-learn's default C = 1, at most 1000 iterations.
"""

from threading import Lock
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fsbench.core.specs import FittedSpec
from protocols.heads.fitted import LinearClassifier, make_protocol, one_hot_labels

if TYPE_CHECKING:
    from torch import Tensor

ADAPTATION = "logistic"


class LogisticSettings(FittedSpec):
    """C: inverse strength of the L2 penalty; tol: largest gradient at which L-BFGS stops."""

    normalize: Literal["none", "l2"] = "l2"
    C: float = Field(1.0, gt=0)
    tol: float = Field(1e-4, gt=0)
    max_iter: int = Field(1000, ge=1)


ONE_AT_A_TIME = Lock()
"""Threads that fit at once wait for the interpreter's lock longer than they gain."""


def fit(settings: LogisticSettings, support: "Tensor") -> LinearClassifier:
    import torch
    from sklearn import config_context

    labels = one_hot_labels(support).argmax(dim=1)
    checked = config_context(assume_finite=True, skip_parameter_validation=True)
    with ONE_AT_A_TIME, checked:
        heads = [fit_logistic(settings, episode.flatten(0, 1), labels) for episode in support]
    weight, bias = (torch.stack(part) for part in zip(*heads, strict=True))
    return LinearClassifier(weight.mT, bias)


def fit_logistic(
    settings: LogisticSettings, images: "Tensor", labels: "Tensor"
) -> "tuple[Tensor, Tensor]":
    """Return weight (n_way, D) and bias (n_way,) of one episode.

    For two classes scikit-learn keeps one row, the log odds of the second; it is split in two.
    """
    import torch
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=settings.C, tol=settings.tol, max_iter=settings.max_iter)
    model.fit(images.numpy(), labels.numpy())
    weight, bias = torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_)
    if len(weight) == 1:
        weight, bias = torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
    return weight, bias


block_size, evaluate_block = make_protocol(fit)
