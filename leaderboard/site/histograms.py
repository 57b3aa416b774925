"""Accuracies of single episodes, counted in 25 bins of 0 to 100 %, two bytes a bin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.outcomes import Outcomes

BINS = 25
"""Of 4 %: three of 75 queries, so that no bin is favoured."""
ROUNDING = 1e-9


def counts(outcomes: Outcomes | None) -> NDArray[np.uint16]:
    """Episodes in each bin (25,), all zero where nothing is held or outcomes are right or wrong."""
    if outcomes is None or np.isin(outcomes.values, (0.0, 1.0)).all():
        return np.zeros(BINS, np.uint16)
    places = np.floor(outcomes.values * BINS + ROUNDING).astype(np.int64)
    found = np.bincount(np.minimum(places, BINS - 1), minlength=BINS)
    return np.minimum(found, 0xFFFF).astype("<u2")


def table(rows: Sequence[Sequence[Outcomes | None]]) -> bytes:
    """Entry by entry, in it column by column, little-endian."""
    return b"".join(counts(each).tobytes() for row in rows for each in row)
