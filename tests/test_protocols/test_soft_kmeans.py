"""Soft k-means by the formula of Ren et al. 2018, class by class; and that it sees the queries."""

import math

import torch
from support.protocols import clouds
from torch import Tensor

from protocols.episodic import centroid
from protocols.episodic.soft_kmeans import SoftKMeansSettings, fit


def refined(support: Tensor, query: Tensor, centroids: Tensor) -> Tensor:
    """One step for one episode: support (n_way, k, D), query (q, D), centroids (n_way, D)."""
    moved = []
    for c in range(len(support)):
        total, weight = support[c].sum(0), float(support.shape[1])
        for x in query:
            near = [math.exp(-float((x - p).square().sum())) for p in centroids]
            total, weight = total + x * near[c] / sum(near), weight + near[c] / sum(near)
        moved.append(total / weight)
    return torch.stack(moved)


def test_scores_are_distances_to_the_refined_centroids() -> None:
    support, query = (part / 2 for part in clouds(episodes=2, n_query=4))
    for steps in (1, 2):
        scores = fit(SoftKMeansSettings(steps=steps), support, query)(query)
        for i in range(2):
            centroids = support[i].mean(1)
            for _ in range(steps):
                centroids = refined(support[i], query[i], centroids)
            expected = -(query[i][:, None] - centroids).square().sum(2)
            lengths = query[i].square().sum(dim=1, keepdim=True)
            torch.testing.assert_close(scores[i] - lengths, expected)


def test_queries_move_the_centroids() -> None:
    support, query = clouds()
    plain = centroid.fit(centroid.CentroidSettings(), support)(query)
    assert (fit(SoftKMeansSettings(), support, query)(query) - plain).abs().max() > 0.1
    assert SoftKMeansSettings().transductive
