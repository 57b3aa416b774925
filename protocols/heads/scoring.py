"""Records of a block of episodes: top-1 outcomes of the queries and of all dense queries.

The queries of an episode are a uniform draw from the images of its classes that the support leaves
(`Episode.query_candidates`), the same number per class. The accuracy over all of these images, with
classes weighted equally, is therefore the expectation of the query accuracy given support and head:
the same quantity without the noise of the draw. The sampled queries are among these images and
count as they were scored: another matrix product may break a tie of logits in another way.

One matrix product per class: its features, stored side by side, times all heads that know the
class.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.records import EpisodeRecords
from fsbench.data.episodes import Episode
from protocols.base import Inputs
from protocols.heads.gram import UntrainedHeads, gather_features
from protocols.heads.sgd import TrainedHeads


def make_episode_records(
    episodes: Sequence[Episode], logits: Tensor, n_query: int
) -> EpisodeRecords:
    """Return top-1 outcomes of logits (E, n_way * n_query, n_way), queries class by class.

    A non-finite logit marks its episode; its predictions count as argmax returns them.
    """
    predicted = logits.argmax(dim=2)
    truth = torch.arange(logits.shape[2], device=logits.device).repeat_interleave(n_query)
    has_few_classes = logits.shape[2] <= 1 << 8
    return EpisodeRecords(
        index=np.array([episode.index for episode in episodes], dtype=np.int64),
        correct=(predicted == truth).view(len(episodes), -1, n_query).cpu().numpy(),
        collapsed=(predicted == predicted[:, :1]).all(dim=1).cpu().numpy(),
        finite=torch.isfinite(logits).flatten(1).all(dim=1).cpu().numpy(),
        predicted=predicted.to(torch.uint8).cpu().numpy() if has_few_classes else None,
    )


IMAGES_AT_ONCE = 1024
"""Images of a class per matrix product, on a fixed grid from the first one."""

Counts = NDArray[np.int64]


def score_dense_queries(
    records: EpisodeRecords, inputs: Inputs, episodes: Sequence[Episode], heads: UntrainedHeads
) -> EpisodeRecords:
    """Add the dense counts of correct and possible queries to the records of these episodes."""
    correct = records.correct.sum(axis=2, dtype=np.int64)
    classes = np.stack([episode.class_ids for episode in episodes])
    for class_id, images in inputs.dataset.by_class.items():
        pairs = np.argwhere(classes == class_id)
        if pairs.size:
            free = np.stack([episodes[e].query_candidates[label] for e, label in pairs])
            sampled = np.stack([episodes[e].query[label] for e, label in pairs])
            np.put_along_axis(free, sampled, False, axis=1)
            correct[tuple(pairs.T)] += count_correct(inputs, images, heads, pairs, free)
    total = np.array([[free.sum() for free in episode.query_candidates] for episode in episodes])
    return replace(records, dense_correct=correct, dense_total=total)


def count_correct(
    inputs: Inputs, images: Counts, heads: UntrainedHeads, pairs: Counts, free: NDArray[np.bool_]
) -> Counts:
    """Count the images of one class that each head classifies correctly, (n,).

    images (n_c,): of the class; pairs (n, 2): episode and label of the class there; free (n, n_c):
    images that count as queries.
    """
    episode, label = (torch.from_numpy(part).to(inputs.device) for part in pairs.T.copy())
    weight = heads.weight.mT[episode].flatten(0, 1)
    bias = heads.bias[episode].flatten()
    correct = np.zeros(len(pairs), dtype=np.int64)
    for low in range(0, len(images), IMAGES_AT_ONCE):
        features = gather_features(
            inputs.features, images[low : low + IMAGES_AT_ONCE], heads.weight
        )
        logits = torch.addmm(bias, features, weight.T).view(len(features), len(pairs), -1)
        hit = (logits.argmax(dim=2) == label).T.cpu().numpy()
        correct += (hit & free[:, low : low + IMAGES_AT_ONCE]).sum(axis=1)
    return correct


def reconstruct_heads(
    inputs: Inputs, episodes: Sequence[Episode], start: UntrainedHeads, trained: TrainedHeads
) -> UntrainedHeads:
    """Return weights (E, D, C) and biases (E, C) of trained heads: W = c W_0 + S^T A."""
    weight = start.weight * trained.share
    for e, episode in enumerate(episodes):
        support, _ = episode.images(inputs.dataset.by_class)
        features: Tensor = gather_features(inputs.features, support.ravel(), start.weight)
        weight.mT[e].addmm_(trained.position[e], features)
    return UntrainedHeads(weight, start.bias * trained.share + trained.position.sum(dim=2))
