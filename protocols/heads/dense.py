"""Dense queries: trained linear heads on every image that could have been a query.

The queries of an episode are a uniform draw from the images of its classes that the support leaves
(`Episode.askable`), the same number a class. So the accuracy over all of these images, each class
counting alike, is what the score of the queries is on average over that draw, given support and
head: the same quantity without the noise of the draw. The queries are among these images.

One product a class: its features, which lie side by side, by all heads that know the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.records import EpisodeRecords
from fsbench.data.episodes import Episode
from protocols.base import Inputs
from protocols.heads.gram import Start, rows
from protocols.heads.sgd import Trained

CHUNK = 1024
"""Images of a class that are scored at once, counted from its first one: a fixed grid."""

Counts = NDArray[np.int64]


def with_dense(
    records: EpisodeRecords, inputs: Inputs, episodes: Sequence[Episode], heads: Start
) -> EpisodeRecords:
    """The records of these episodes, completed by what their heads make of all possible queries."""
    correct = np.zeros(records.class_ids.shape, dtype=np.int64)
    for class_id, images in inputs.dataset.by_class.items():
        places = np.argwhere(records.class_ids == class_id)
        if places.size:
            free = np.stack([episodes[e].askable[label] for e, label in places])
            correct[tuple(places.T)] = right(inputs, images, heads, places, free)
    total = np.array([[free.sum() for free in episode.askable] for episode in episodes])
    return replace(records, dense_correct=correct, dense_total=total)


def right(
    inputs: Inputs, images: Counts, heads: Start, places: Counts, free: NDArray[np.bool_]
) -> Counts:
    """How many images of one class each head gets right, (n,).

    images (n_c,): of the class; places (n, 2): episode and label of the class in it; free (n, n_c):
    images that count.
    """
    episode, label = (torch.from_numpy(part).to(inputs.device) for part in places.T.copy())
    weight = heads.weight[episode].transpose(0, 1).flatten(1)
    bias = heads.bias[episode].flatten()
    found = np.zeros(len(places), dtype=np.int64)
    for low in range(0, len(images), CHUNK):
        features = rows(inputs.features, images[low : low + CHUNK], heads.weight)
        logits = torch.addmm(bias, features, weight).view(len(features), len(places), -1)
        hit = (logits.argmax(dim=2) == label).T.cpu().numpy()
        found += (hit & free[:, low : low + CHUNK]).sum(axis=1)
    return found


def linear_heads(
    inputs: Inputs, episodes: Sequence[Episode], start: Start, trained: Trained
) -> Start:
    """Weights (E, D, C) and biases (E, C) of heads trained on Gram matrices: W = c W_0 + S^T A."""
    weight = start.weight * trained.share
    for e, episode in enumerate(episodes):
        support, _ = episode.images(inputs.dataset.by_class)
        features: Tensor = rows(inputs.features, support.ravel(), start.weight)
        weight[e].addmm_(features.T, trained.position[e])
    return Start(weight, start.bias * trained.share + trained.position.sum(dim=1))
