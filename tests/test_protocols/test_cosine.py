"""Cosine to the class means: a case by hand, and learn2learn's classifier with that distance."""

import math

import pytest
import torch
from support.protocols import clouds

from protocols.episodic.cosine import CosineSettings, fit


def test_only_directions_count_and_the_mean_is_of_raw_features() -> None:
    support = torch.tensor([[[[9.0, 0.0], [0.0, 3.0]], [[0.0, 0.1], [0.0, 0.1]]]])
    images = torch.tensor([[[300.0, 100.0], [0.0, 0.01]]])
    scores = fit(CosineSettings(), support)(images) / images.norm(dim=2, keepdim=True)
    expected = torch.tensor([[[1.0, 1 / math.sqrt(10)], [1 / math.sqrt(10), 1.0]]])
    torch.testing.assert_close(scores, expected)


def test_it_is_the_classifier_of_learn2learn_with_cosine_distance() -> None:
    nn = pytest.importorskip("learn2learn.nn", reason="learn2learn is not installed: make meta")
    support, query = clouds()
    labels = torch.arange(5).repeat_interleave(3)
    scores = fit(CosineSettings(), support)(query)
    for i in range(len(support)):
        theirs = nn.PrototypicalClassifier(support[i].flatten(0, 1), labels, distance="cosine")
        lengths = query[i].norm(dim=1, keepdim=True)
        torch.testing.assert_close(scores[i] / lengths, theirs(query[i]))
