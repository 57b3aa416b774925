"""Nearest centroid: a case by hand, and learn2learn's classifier of prototypical networks."""

import pytest
import torch
from support.protocols import clouds

from protocols.episodic.centroid import CentroidSettings, fit


def test_scores_are_minus_squared_distances_to_the_means_but_for_the_image() -> None:
    support = torch.tensor([[[[0.0, 0.0], [2.0, 0.0]], [[0.0, 4.0], [0.0, 6.0]]]])
    scores = fit(CentroidSettings(), support)(torch.tensor([[[1.0, 2.0], [3.0, 5.0]]]))
    torch.testing.assert_close(scores, torch.tensor([[[5 - 4.0, 5 - 10.0], [34 - 29.0, 34 - 9.0]]]))


def test_it_is_the_classifier_of_learn2learn() -> None:
    nn = pytest.importorskip("learn2learn.nn", reason="learn2learn is not installed: make meta")
    support, query = clouds()
    labels = torch.arange(5).repeat_interleave(3)
    scores = fit(CentroidSettings(), support)(query)
    for i in range(len(support)):
        theirs = nn.PrototypicalClassifier(support[i].flatten(0, 1), labels)
        lengths = query[i].square().sum(dim=1, keepdim=True)
        torch.testing.assert_close(scores[i] - lengths, theirs(query[i]))
