"""Heads that are fitted to an episode, against scikit-learn, torch and by hand."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from support.protocols import clouds
from torch import Tensor
from torch.nn.functional import cross_entropy

from protocols.episodic import centroid, cosine, knn, logistic, ridge, soft_kmeans


def fit_scikit(model: Any, support: Tensor) -> Any:
    """Fit a classifier to the support images (n_way, k_shot, D) of one episode."""
    labels = np.repeat(np.arange(len(support)), support.shape[1])
    return model.fit(support.flatten(0, 1).numpy(), labels)


@pytest.mark.parametrize("weights", ["distance", "uniform"])
@pytest.mark.parametrize("k", [1, 3, 5, 14])
def test_votes_of_neighbours_are_those_of_scikit_learn(k: int, weights: Any) -> None:
    support, query = clouds()
    votes = knn.fit(knn.KnnSettings(k=k, weights=weights), support)(query)
    for i in range(len(support)):
        theirs = fit_scikit(KNeighborsClassifier(k, weights=weights), support[i])
        shares = (votes[i] / votes[i].sum(1, keepdim=True)).numpy()
        np.testing.assert_allclose(shares, theirs.predict_proba(query[i].numpy()), atol=1e-12)


def test_one_shot_is_the_nearest_neighbour() -> None:
    """All five support images vote, the nearest one loudest; unweighted, all alike."""
    support, query = clouds(k_shot=1)
    near = torch.cdist(query, support.flatten(1, 2)).argmin(2)
    assert torch.equal(knn.fit(knn.KnnSettings(), support)(query).argmax(2), near)
    votes = knn.fit(knn.KnnSettings(k=5, weights="uniform"), support)(query)
    assert torch.equal(votes, torch.ones_like(votes))


def test_an_image_met_again_decides_alone() -> None:
    support = torch.tensor([[[[0.0], [1.0], [1.1]], [[1.2], [1.3], [1.4]]]]).double()
    votes = knn.fit(knn.KnnSettings(), support)(torch.tensor([[[0.0]]]).double())
    assert torch.isfinite(votes).all()
    assert votes[0, 0, 0] > 1e50 * votes[0, 0, 1]


@pytest.mark.parametrize("lam", [0.03, 1.0, 40.0])
@pytest.mark.parametrize(("n_way", "k_shot"), [(5, 1), (5, 6), (3, 2)])
def test_ridge_scores_are_the_decisions_of_scikit_learn(
    n_way: int, k_shot: int, lam: float
) -> None:
    """With fewer and with more images than dimensions."""
    support, query = clouds(n_way=n_way, k_shot=k_shot)
    scores = ridge.fit(ridge.RidgeSettings(lam=lam), support)(query)
    for i in range(len(support)):
        theirs = fit_scikit(RidgeClassifier(alpha=lam), support[i])
        np.testing.assert_allclose(scores[i].numpy(), theirs.decision_function(query[i].numpy()))


def test_two_classes_of_ridge_have_opposite_scores_and_no_penalty_is_refused() -> None:
    support, query = clouds(n_way=2)
    scores = ridge.fit(ridge.RidgeSettings(), support)(query)
    torch.testing.assert_close(scores[..., 0], -scores[..., 1])
    assert ridge.RidgeSettings().lam == RidgeClassifier().alpha
    with pytest.raises(ValidationError, match="greater than 0"):
        ridge.RidgeSettings(lam=0)


def minimise(images: Tensor, labels: Tensor, n_way: int, strength: float) -> tuple[Tensor, Tensor]:
    """Weights (n_way, D) and bias that minimise C * sum of losses + |weights|^2 / 2, by L-BFGS."""
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
def test_logistic_scores_are_those_of_the_optimum(strength: float) -> None:
    support, query = (part / 8 for part in clouds(episodes=2))
    labels = torch.arange(5).repeat_interleave(3)
    scores = logistic.fit(logistic.LogisticSettings(C=strength, tol=1e-8), support)(query)
    for i in range(2):
        weight, bias = minimise(support[i].flatten(0, 1), labels, 5, strength)
        expected = query[i] @ weight.T + bias
        ours, theirs = (z - z.mean(1, keepdim=True) for z in (scores[i], expected))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-3)


def test_logistic_scores_of_two_classes_are_the_log_odds_of_scikit_learn() -> None:
    support, query = (part / 8 for part in clouds(n_way=2))
    scores = logistic.fit(logistic.LogisticSettings(), support)(query)
    for i in range(len(support)):
        theirs = fit_scikit(LogisticRegression(max_iter=1000), support[i])
        odds = (scores[i, :, 1] - scores[i, :, 0]).numpy()
        np.testing.assert_allclose(odds, theirs.decision_function(query[i].numpy()))
    assert logistic.LogisticSettings().normalize == "l2"


def test_centroid_scores_are_minus_squared_distances_but_for_the_image() -> None:
    support = torch.tensor([[[[0.0, 0.0], [2.0, 0.0]], [[0.0, 4.0], [0.0, 6.0]]]])
    images = torch.tensor([[[1.0, 2.0], [3.0, 5.0]]])
    scores = centroid.fit(centroid.CentroidSettings(), support)(images)
    torch.testing.assert_close(scores, torch.tensor([[[5 - 4.0, 5 - 10.0], [34 - 29.0, 34 - 9.0]]]))


def test_cosine_sees_directions_alone_and_the_mean_is_of_raw_features() -> None:
    support = torch.tensor([[[[9.0, 0.0], [0.0, 3.0]], [[0.0, 0.1], [0.0, 0.1]]]])
    images = torch.tensor([[[300.0, 100.0], [0.0, 0.01]]])
    scores = cosine.fit(cosine.CosineSettings(), support)(images)
    expected = torch.tensor([[[1.0, 1 / math.sqrt(10)], [1 / math.sqrt(10), 1.0]]])
    torch.testing.assert_close(scores / images.norm(dim=2, keepdim=True), expected)


def refine(support: Tensor, query: Tensor, centroids: Tensor) -> Tensor:
    """One step of Ren et al. 2018: support (n_way, k, D), query (q, D), centroids (n_way, D)."""
    moved = []
    for c in range(len(support)):
        total, weight = support[c].sum(0), float(support.shape[1])
        for x in query:
            near = [math.exp(-float((x - p).square().sum())) for p in centroids]
            total, weight = total + x * near[c] / sum(near), weight + near[c] / sum(near)
        moved.append(total / weight)
    return torch.stack(moved)


@pytest.mark.parametrize("steps", [1, 2])
def test_soft_k_means_scores_are_distances_to_the_refined_centroids(steps: int) -> None:
    support, query = (part / 2 for part in clouds(episodes=2, n_query=4))
    settings = soft_kmeans.SoftKMeansSettings(steps=steps)
    assert settings.transductive
    scores = soft_kmeans.fit(settings, support, query)(query)
    for i in range(2):
        centroids = start = support[i].mean(1)
        for _ in range(steps):
            centroids = refine(support[i], query[i], centroids)
        assert (centroids - start).abs().max() > 0.01
        expected = -(query[i][:, None] - centroids).square().sum(2)
        lengths = query[i].square().sum(dim=1, keepdim=True)
        torch.testing.assert_close(scores[i] - lengths, expected)
