"""Outcomes of an evaluation in memory: one row an episode, or one row a learning rate of a probe.

Everything a reader may ask later (means, intervals, paired tests) is recomputed from these; clock
values never enter them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class EpisodeRecords:
    """Outcomes of E episodes, sorted by index.

    index (E,) int64: absolute episode numbers; class_ids (E, n_way) int64: official ids in episode
    label order; correct (E, n_way, n_query) bool: query q of class c was predicted right;
    collapsed (E,) bool: all predictions are one class; finite (E,) bool: every logit is finite.
    """

    index: NDArray[np.int64]
    class_ids: NDArray[np.int64]
    correct: NDArray[np.bool_]
    collapsed: NDArray[np.bool_]
    finite: NDArray[np.bool_]

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Per-episode accuracy (E,), a fraction of n_way * n_query."""
        right: NDArray[np.float64] = self.correct.mean(axis=(1, 2), dtype=np.float64)
        return right

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> EpisodeRecords:
        """The given rows, as a mask (E,) or as positions."""
        return EpisodeRecords(
            self.index[rows],
            self.class_ids[rows],
            self.correct[rows],
            self.collapsed[rows],
            self.finite[rows],
        )


def concatenate(parts: list[EpisodeRecords]) -> EpisodeRecords:
    """All rows of the parts, sorted by episode index."""
    columns = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("index", "class_ids", "correct", "collapsed", "finite")
    ]
    return EpisodeRecords(*columns).take(np.argsort(columns[0], kind="stable"))


@dataclass(frozen=True, eq=False)
class ProbeRecords:
    """Outcomes of a linear probe: L learning rates on N test images in data set order.

    lr (L,) float64; curve (L, epochs) float64: test accuracy after each epoch; last (L, N) and
    best (L, N) bool: test image n was right after the last epoch, and after the best epoch (the
    first one with the highest test accuracy; the paper reports it, and it is picked on test).
    held_out (L,) float64: accuracy on training images that a second run, on the others, has not
    seen, after its last epoch; None where the spec holds none out.
    """

    lr: NDArray[np.float64]
    curve: NDArray[np.float64]
    last: NDArray[np.bool_]
    best: NDArray[np.bool_]
    held_out: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class ImageRecords:
    """Outcomes of a probe without training: correct (N,) bool of test images in data set order."""

    correct: NDArray[np.bool_]
