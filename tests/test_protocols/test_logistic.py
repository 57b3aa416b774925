"""Logistic regression: the optimum of its own loss, whoever found it; scikit-learn's predictions.

The optimum is held against L-BFGS of torch on the loss as textbooks write it.
"""

import numpy as np
import pytest
import torch
from support.protocols import clouds
from torch import Tensor
from torch.nn.functional import cross_entropy

from protocols.episodic.logistic import LogisticSettings, fit


def optimum(images: Tensor, labels: Tensor, n_way: int, strength: float) -> tuple[Tensor, Tensor]:
    """Weights (n_way, D) and bias that minimise C * sum of losses + |weights|^2 / 2."""
    weight = torch.zeros(n_way, images.shape[1], dtype=images.dtype, requires_grad=True)
    bias = torch.zeros(n_way, dtype=images.dtype, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weight, bias], max_iter=500, tolerance_grad=1e-10, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        solver.zero_grad()
        losses = cross_entropy(images @ weight.T + bias, labels, reduction="sum")
        value = strength * losses + weight.square().sum() / 2
        value.backward()
        return value

    solver.step(loss)
    return weight.detach(), bias.detach()


@pytest.mark.parametrize("strength", [0.1, 5.0])
def test_scores_are_those_of_the_optimum(strength: float) -> None:
    support, query = (part / 8 for part in clouds(episodes=2))
    labels = torch.arange(5).repeat_interleave(3)
    computed = fit(LogisticSettings(C=strength, tol=1e-8), support)(query)
    for i in range(2):
        weight, bias = optimum(support[i].flatten(0, 1), labels, 5, strength)
        scores = query[i] @ weight.T + bias
        torch.testing.assert_close(
            computed[i] - computed[i].mean(1, keepdim=True),
            scores - scores.mean(1, keepdim=True),
            rtol=0,
            atol=1e-3,
        )


@pytest.mark.parametrize("n_way", [2, 5])
def test_predictions_are_those_of_scikit_learn(n_way: int) -> None:
    from sklearn.linear_model import LogisticRegression

    support, query = (part / 8 for part in clouds(n_way=n_way))
    predictions = fit(LogisticSettings(), support)(query).argmax(2)
    labels = np.repeat(np.arange(n_way), 3)
    for i in range(len(support)):
        theirs = LogisticRegression(max_iter=1000).fit(support[i].flatten(0, 1).numpy(), labels)
        np.testing.assert_array_equal(predictions[i].numpy(), theirs.predict(query[i].numpy()))


def test_two_classes_have_the_log_odds_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    support, query = (part / 8 for part in clouds(n_way=2))
    scores = fit(LogisticSettings(), support)(query)
    theirs = LogisticRegression(max_iter=1000).fit(
        support[0].flatten(0, 1).numpy(), np.repeat([0, 1], 3)
    )
    odds = (scores[0, :, 1] - scores[0, :, 0]).numpy()
    np.testing.assert_allclose(odds, theirs.decision_function(query[0].numpy()))


def test_features_have_length_one_by_default() -> None:
    assert LogisticSettings().normalize == "l2"
