"""Outcomes of an evaluation in memory: one row an episode, or one row a learning rate of a probe.

Everything a reader may ask later (means, intervals, paired tests) is recomputed from these; clock
values never enter them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

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
    """

    index: NDArray[np.int64]
    correct: NDArray[np.bool_]
    collapsed: NDArray[np.bool_]
    finite: NDArray[np.bool_]
    dense_correct: NDArray[np.int64] | None = None
    dense_total: NDArray[np.int64] | None = None

    if not TYPE_CHECKING:  # for a type checker `correct` is a field like the others

        def __getattr__(self, name: str) -> NDArray[np.bool_]:
            """Unpack stored outcomes when they are asked for."""
            if name != "correct" or "packed" not in vars(self):
                raise AttributeError(name)
            bits = np.unpackbits(vars(self)["packed"], axis=-1, count=self.shape[-1])
            return bits.view(np.bool_)

    @classmethod
    def stored(
        cls, packed: NDArray[np.uint8], n_query: int, **arrays: NDArray[Any]
    ) -> "EpisodeRecords":
        """Return records whose outcomes stay packed until they are asked for.

        packed (E, n_way, bytes): numpy.packbits over the queries of each class; arrays: the others.
        """
        records = object.__new__(cls)
        right = np.bitwise_count(packed).sum(axis=-1, dtype=np.int64)
        shape = (*packed.shape[:2], n_query)
        vars(records).update(arrays, packed=packed, shape=shape, right=right)
        return records

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Episodes, classes, queries of each class."""
        episodes, n_way, n_query = self.correct.shape
        return episodes, n_way, n_query

    @cached_property
    def right(self) -> NDArray[np.int64]:
        """Right queries (E, n_way) of each class."""
        return np.asarray(self.correct.sum(axis=-1, dtype=np.int64))

    @cached_property
    def hits(self) -> NDArray[np.int64]:
        """Right queries (E,)."""
        return np.asarray(self.right.sum(axis=1))

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Per-episode accuracy (E,), a fraction of n_way * n_query."""
        return np.asarray(self.hits / (self.shape[1] * self.shape[2]), np.float64)

    @property
    def dense_accuracy(self) -> NDArray[np.float64] | None:
        """Per-episode accuracy (E,) over all possible queries; classes count alike."""
        if self.dense_correct is None or self.dense_total is None:
            return None
        right: NDArray[np.float64] = (self.dense_correct / self.dense_total).mean(axis=1)
        return right

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "EpisodeRecords":
        """Return some rows, stated as a mask (E,) or as positions."""
        return EpisodeRecords(**{name: values[rows] for name, values in columns(self).items()})


@dataclass(frozen=True, eq=False)
class EpisodeBatch:
    """R results of E episodes each, of one shape; arrays (R, E, ...), as in EpisodeRecords."""

    parts: Sequence[EpisodeRecords]

    def stack(self, name: str) -> NDArray[Any]:
        """Return one of the arrays of all results."""
        return np.stack([getattr(part, name) for part in self.parts])

    @cached_property
    def right(self) -> NDArray[np.int64]:
        """Right queries (R, E, n_way) of each class."""
        return self.stack("right")

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        """As EpisodeRecords.accuracy, (R, E)."""
        _, n_way, n_query = self.parts[0].shape
        hits = self.right.sum(axis=-1)
        for part, of_result in zip(self.parts, hits, strict=True):
            vars(part)["hits"] = of_result
        return np.asarray(hits / (n_way * n_query), np.float64)

    @cached_property
    def dense_accuracy(self) -> NDArray[np.float64] | None:
        """As EpisodeRecords.dense_accuracy, (R, E)."""
        if self.parts[0].dense_correct is None:
            return None
        shares = self.stack("dense_correct") / self.stack("dense_total")
        return np.asarray(shares.mean(axis=-1), np.float64)


Batches = Sequence[tuple[Sequence[int], EpisodeBatch]]
"""Batches of results, each with their places among all results."""


def batch_episodes(records: Sequence["Records"]) -> Batches:
    """Return the results of episodes in batches of one shape."""
    shapes: dict[object, list[int]] = {}
    for place, part in enumerate(records):
        if isinstance(part, EpisodeRecords):
            shape = (part.shape, part.dense_correct is None)
            shapes.setdefault(shape, []).append(place)
    return [
        (
            places,
            EpisodeBatch([part for i in places if isinstance(part := records[i], EpisodeRecords)]),
        )
        for places in shapes.values()
    ]


def columns(records: "Records") -> dict[str, NDArray[Any]]:
    """Return the arrays that are there, by name."""
    arrays = {field.name: getattr(records, field.name) for field in fields(records)}
    return {name: values for name, values in arrays.items() if values is not None}


def concatenate(parts: list[EpisodeRecords]) -> EpisodeRecords:
    """Concatenate the parts, sorted by episode index; keep dense outcomes if all have them."""
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
