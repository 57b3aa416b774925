"""k-NN heads against scikit-learn's KNeighborsClassifier, and their ties by hand."""

from typing import Literal

import numpy as np
import pytest
import torch
from support.protocols import clouds

from protocols.episodic.knn import KnnSettings, fit


@pytest.mark.parametrize("weights", ["distance", "uniform"])
@pytest.mark.parametrize("k", [1, 3, 5, 14])
def test_votes_are_those_of_scikit_learn(k: int, weights: Literal["distance", "uniform"]) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    support, query = clouds()
    votes = fit(KnnSettings(k=k, weights=weights), support)(query)
    labels = np.repeat(np.arange(5), 3)
    for i in range(len(support)):
        theirs = KNeighborsClassifier(k, weights=weights)
        theirs.fit(support[i].flatten(0, 1).numpy(), labels)
        shares = (votes[i] / votes[i].sum(1, keepdim=True)).numpy()
        np.testing.assert_allclose(shares, theirs.predict_proba(query[i].numpy()), atol=1e-12)


def test_one_shot_is_the_nearest_neighbour() -> None:
    """All five support images vote, the nearest one loudest."""
    support, query = clouds(k_shot=1)
    near = torch.cdist(query, support.flatten(1, 2)).argmin(2)
    assert torch.equal(fit(KnnSettings(), support)(query).argmax(2), near)


def test_an_image_met_again_decides_alone() -> None:
    support = torch.tensor([[[[0.0], [1.0], [1.1]], [[1.2], [1.3], [1.4]]]]).double()
    votes = fit(KnnSettings(), support)(torch.tensor([[[0.0]]]).double())
    assert torch.isfinite(votes).all()
    assert votes[0, 0, 0] > 1e50 * votes[0, 0, 1]


def test_fewer_images_than_k_all_vote() -> None:
    support, query = clouds(n_way=2, k_shot=1)
    votes = fit(KnnSettings(k=5, weights="uniform"), support)(query)
    assert torch.equal(votes, torch.ones_like(votes))
