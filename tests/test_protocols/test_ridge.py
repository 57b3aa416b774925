"""Ridge heads against scikit-learn's RidgeClassifier, with fewer and with more images than D."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from support.protocols import clouds

from protocols.episodic.ridge import RidgeSettings, fit


@pytest.mark.parametrize("lam", [0.03, 1.0, 40.0])
@pytest.mark.parametrize(("n_way", "k_shot"), [(5, 1), (5, 6), (3, 2)])
def test_scores_are_the_decisions_of_scikit_learn(n_way: int, k_shot: int, lam: float) -> None:
    from sklearn.linear_model import RidgeClassifier

    support, query = clouds(n_way=n_way, k_shot=k_shot)
    scores = fit(RidgeSettings(lam=lam), support)(query)
    labels = np.repeat(np.arange(n_way), k_shot)
    for i in range(len(support)):
        theirs = RidgeClassifier(alpha=lam).fit(support[i].flatten(0, 1).numpy(), labels)
        np.testing.assert_allclose(scores[i].numpy(), theirs.decision_function(query[i].numpy()))


def test_two_classes_give_opposite_scores() -> None:
    support, query = clouds(n_way=2)
    scores = fit(RidgeSettings(), support)(query)
    torch.testing.assert_close(scores[..., 0], -scores[..., 1])


def test_the_default_is_that_of_scikit_learn_and_no_penalty_is_refused() -> None:
    from sklearn.linear_model import RidgeClassifier

    assert RidgeSettings().lam == RidgeClassifier().alpha
    with pytest.raises(ValidationError, match="greater than 0"):
        RidgeSettings(lam=0)
