"""Warnings where an accuracy may measure the scale of features instead of their transfer.

`linear`, the head of the published protocol, trains on raw features with a fixed learning rate, so
the same features times 0.1 or 100 give other accuracies. `logistic` and `ridge` scale features to
length 1 and are free of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId

LARGEST_RATIO = 2.0
"""Mean norms of two backbones that differ by more are warned of."""


def warn_of_scale(results: Mapping[str, Mapping[ColumnId, Result]]) -> str:
    """Return a sentence on entries whose features differ too much in scale; empty if none do.

    results: entry -> column -> result. Heads whose outcomes do not depend on the scale of features
    and results that do not record it count for nothing.
    """
    norms: dict[ColumnId, dict[str, float]] = {}
    for name, by_column in results.items():
        for column, result in by_column.items():
            if not result.spec.scale_free and result.feature_norm:
                norms.setdefault(column, {})[name] = result.feature_norm
    widest, ratio = None, LARGEST_RATIO
    heads: dict[str, None] = {}
    for column, by_name in norms.items():
        spread = max(by_name.values()) / min(by_name.values())
        if spread > LARGEST_RATIO:
            heads[column.task.head or column.task.shape] = None
        if spread > ratio:
            widest, ratio = by_name, spread
    if widest is None:
        return ""
    largest, smallest = max(widest, key=widest.__getitem__), min(widest, key=widest.__getitem__)
    return (
        f"Feature norms differ {ratio:.3g} times: {widest[largest]:.3g} for {largest}, "
        f"{widest[smallest]:.3g} for {smallest}. Accuracies of {' and '.join(heads)} depend on the "
        "scale of features as well as on transfer; --adapt logistic does not."
    )
