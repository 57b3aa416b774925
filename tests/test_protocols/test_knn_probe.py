"""The k-NN probe beside scikit-learn's classifier."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from support.protocols import noise, separable, target

from fsbench.core.errors import CheckpointError, DataError, UsageError
from fsbench.core.specs import KnnSpec
from protocols.base import Inputs
from protocols.probes import knn
from protocols.probes.knn import evaluate_knn_probe

DATASET = target()
TRAIN = np.flatnonzero(np.arange(len(DATASET)) % 4 != 0)
TEST = np.flatnonzero(np.arange(len(DATASET)) % 4 == 0)


MIXED = noise(DATASET) - 0.3 + 0.1 * separable(DATASET)


def is_correct(
    spec: KnnSpec,
    features: NDArray[np.float32] = MIXED,
    train: Sequence[int] = TRAIN,
    test: Sequence[int] = TEST,
    device: str = "cpu",
) -> NDArray[np.bool_]:
    inputs = Inputs(None, DATASET, features, device)
    return evaluate_knn_probe(inputs, spec, np.array(train), np.array(test)).correct


def softmax(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cosine distance is 1 - similarity."""
    return np.exp((1 - distance) / 0.07)


@pytest.mark.parametrize("k", [1, 5, 20, 60])
@pytest.mark.parametrize(
    ("metric", "weights"), [("cosine", softmax), ("euclidean", "uniform")], ids=["cosine", "euclid"]
)
def test_it_is_scikit_learns(metric: str, weights: Any, k: int, device: str) -> None:
    spec = KnnSpec.model_validate({"k": k, "metric": metric})
    x, y = MIXED.astype(np.float64), DATASET.labels
    theirs = KNeighborsClassifier(k, weights=weights, metric=spec.metric, algorithm="brute")
    expected = theirs.fit(x[TRAIN], y[TRAIN]).predict(x[TEST]) == y[TEST]
    np.testing.assert_array_equal(is_correct(spec, device=device), expected)
    assert 0.2 < expected.mean() < 0.99


@pytest.mark.parametrize(
    ("train", "query", "right"), [([0, 80], [81], False), ([80, 0], [1], True)]
)
def test_the_smallest_label_wins_a_tied_vote(
    train: list[int], query: list[int], right: bool
) -> None:
    features = np.ones((len(DATASET), 2), np.float32)
    features[0], features[80] = (1, 0), (0, 1)
    spec = KnnSpec(k=2, temperature=1e6)
    assert is_correct(spec, features, train, query).tolist() == [right]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_chunks_change_nothing(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = KnnSpec.model_validate({"metric": metric, "k": 7})
    whole = is_correct(spec)
    for entries in (5 * len(TRAIN), 1):
        monkeypatch.setattr(knn, "ENTRIES", entries)
        np.testing.assert_array_equal(is_correct(spec), whole)


def test_euclidean_neighbours_far_from_the_origin_keep_their_digits() -> None:
    spec = KnnSpec(metric="euclidean", k=5)
    assert (is_correct(spec) != is_correct(spec, MIXED + np.float32(1000))).mean() < 0.05


def test_what_cannot_be_probed_is_said() -> None:
    with pytest.raises(UsageError, match=r"has 5 training images; .* k = 9"):
        is_correct(KnnSpec(k=9), train=TRAIN[:5])
    with pytest.raises(DataError, match="0 test images"):
        is_correct(KnnSpec(), test=TEST[:0])
    features = MIXED.copy()
    features[TRAIN[3], 0] = np.nan
    with pytest.raises(CheckpointError, match="NaN or infinity"):
        is_correct(KnnSpec(), features)
