"""Outcomes of an evaluation in memory, from which every mean and test is recomputed; no times."""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class EpisodeRecords:
    """Outcomes of E episodes, sorted by index.

    index (E,) int64: absolute episode numbers, from which classes and images follow; correct (E,
    n_way, n_query) bool: query q of class c was predicted right; collapsed (E,) bool: all
    predictions are one class; finite (E,) bool: every logit is finite.

    dense_correct, dense_total (E, n_way) int64: of all images of each class that could have been a
    query, how many were right, and how many there are. The queries are a uniform draw from them, so
    both accuracies estimate the same. None where a protocol scores the queries alone.

    predicted (E, n_way * n_query) uint8: the class 0..n_way-1 that each query was taken for, class
    by class. No score depends on it. None in entries of boards, and for more than 256 classes.
    """

    index: NDArray[np.int64]
    correct: NDArray[np.bool_]
    collapsed: NDArray[np.bool_]
    finite: NDArray[np.bool_]
    dense_correct: NDArray[np.int64] | None = None
    dense_total: NDArray[np.int64] | None = None
    predicted: NDArray[np.uint8] | None = None

    @cached_property
    def right(self) -> NDArray[np.int64]:
        """Right queries (E, n_way) of each class."""
        smallest = np.min_scalar_type(self.correct.shape[-1])  # several times as fast as int64
        counts = np.einsum("ecq->ec", self.correct.view(np.uint8), dtype=smallest)
        return np.asarray(counts, np.int64)

    @cached_property
    def hits(self) -> NDArray[np.int64]:
        """Right queries (E,)."""
        return np.asarray(self.right.sum(axis=1))

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Per-episode accuracy (E,), a fraction of n_way * n_query."""
        return np.asarray(self.hits / math.prod(self.correct.shape[1:]), np.float64)

    @property
    def dense_accuracy(self) -> NDArray[np.float64] | None:
        """Per-episode accuracy (E,) over all possible queries; classes count alike."""
        if self.dense_correct is None or self.dense_total is None:
            return None
        return np.asarray((self.dense_correct / self.dense_total).mean(axis=1))

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "EpisodeRecords":
        """Return some rows, stated as a mask (E,) or as positions."""
        return EpisodeRecords(**{name: values[rows] for name, values in columns(self).items()})


def columns(records: "Records") -> dict[str, NDArray[Any]]:
    """Return the arrays that are there, by name."""
    arrays = {field.name: getattr(records, field.name) for field in fields(records)}
    return {name: values for name, values in arrays.items() if values is not None}


def concatenate(parts: list[EpisodeRecords]) -> EpisodeRecords:
    """Concatenate the parts, sorted by episode index; keep optional arrays that all have."""
    arrays = [columns(part) for part in parts]
    names = [name for name in arrays[0] if all(name in block for block in arrays)]
    joined = {name: np.concatenate([block[name] for block in arrays]) for name in names}
    return EpisodeRecords(**joined).take(np.argsort(joined["index"], kind="stable"))


@dataclass(frozen=True, eq=False)
class ProbeRecords:
    """Outcomes of a linear probe: L learning rates on N test images in data set order.

    lr (L,) float64; curve (L, epochs) float64: test accuracy after each epoch; last (L, N) and
    best (L, N) bool: test image n was right after the last epoch, and after the best epoch (the
    first one with the highest test accuracy; the paper reports it, and it is picked on test).
    held_out (L,) float64: score on training images that a second run, on the others, has not seen,
    after its last epoch; None where the spec holds none out. Where it chooses the epoch too,
    held_out_curve (L, epochs) is in its place, and chosen (L, N) bool: test image n was right after
    the first epoch with the highest score there.
    """

    lr: NDArray[np.float64]
    curve: NDArray[np.float64]
    last: NDArray[np.bool_]
    best: NDArray[np.bool_]
    held_out: NDArray[np.float64] | None = None
    held_out_curve: NDArray[np.float64] | None = None
    chosen: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class ImageRecords:
    """Outcomes of a probe without training: correct (N,) bool of test images in data set order."""

    correct: NDArray[np.bool_]


Records = EpisodeRecords | ProbeRecords | ImageRecords
