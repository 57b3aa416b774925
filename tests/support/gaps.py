"""Gaps of known pairs."""

import numpy as np

from fsbench.core.statistics import Paired
from leaderboard.ranking.gaps import Gaps


def gather(*pairs: Paired) -> Gaps:
    """Return these gaps over rows named 0, 1, ..., whose errors are over episodes."""
    fields = np.array([[p.gap, p.se, p.freedom, p.n, p.fewest] for p in pairs]).T
    names = tuple(map(str, range(len(pairs))))
    return Gaps(names, *fields, has_seeds=np.zeros(len(pairs), np.bool_))
