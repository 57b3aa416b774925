"""k-NN probe: the training images nearest in feature space vote on every test image.

Source: DINO (Caron et al., ICCV 2021, section 4.1, and its `eval_knn.py`): cosine similarity, k =
20, votes weighted by exp(similarity / 0.07). With the Euclidean metric every neighbour has one
vote, as in scikit-learn. In a tied vote the smallest label wins; no choice is made on test images.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from fsbench.core.errors import UsageError
from fsbench.core.records import ImageRecords
from fsbench.core.specs import KnnSpec
from protocols.base import ImageIndices, Inputs, SplitFeatures, split_features

ENTRIES = 2**25
"""Similarities in memory at once, 128 MiB in float32."""


def evaluate_knn_probe(
    inputs: Inputs, spec: KnnSpec, train_idx: ImageIndices, test_idx: ImageIndices
) -> ImageRecords:
    """Evaluate the images test_idx, in their order.

    Raise CheckpointError on non-finite features, DataError on an empty side of the split, and
    UsageError for fewer than k training images.
    """
    train, test, n_classes = split_features(inputs, train_idx, test_idx)
    if spec.k > len(train.y):
        raise UsageError(
            f"{inputs.dataset.name} has {len(train.y)} training images; "
            f"the k-NN probe needs at least k = {spec.k}",
            fix="use --set probe.k=N with a smaller N",
        )
    if spec.metric == "cosine":
        train, test = (SplitFeatures(normalize(side.x), side.y) for side in (train, test))
    else:
        centre = train.x.mean(dim=0)  # distances stay as they are, and lose fewer digits
        train, test = (SplitFeatures(side.x - centre, side.y) for side in (train, test))
    chunks = torch.split(test.x, max(1, ENTRIES // len(train.y)))
    labels = [predict_labels(spec, x, train, n_classes) for x in chunks]
    return ImageRecords(np.concatenate(labels) == test.y.cpu().numpy())


def predict_labels(
    spec: KnnSpec, x: Tensor, train: SplitFeatures, n_classes: int
) -> NDArray[np.int64]:
    """Predict labels (m,) of features (m, D); both sides are prepared for the metric."""
    near = x @ train.x.mT
    if spec.metric == "euclidean":  # a test image's own square moves no neighbour
        near = near.mul_(2).sub_(train.x.square().sum(dim=1))
    nearness, index = (t.cpu() for t in near.topk(spec.k, dim=1))  # GPUs add votes in any order
    if spec.metric == "euclidean":
        weights = torch.ones_like(nearness)
    else:  # shifted by the largest: only ratios matter, and no sum overflows
        weights = ((nearness - nearness[:, :1]) / spec.temperature).exp()
    votes = weights.new_zeros(len(x), n_classes).scatter_add_(1, train.y.cpu()[index], weights)
    return np.asarray(votes.numpy().argmax(axis=1), np.int64)
