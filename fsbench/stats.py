"""Statistics of episode accuracies: the mean with its interval, the paired difference, Holm.

Interval: 1.96 * s / sqrt(n) with ddof 1 (protocol.md 3 and 6: IBM prints ddof 0, STARTUP saves
ddof 1; at 600 episodes they differ by less than 0.001 points). It covers the sampling of episodes
only, not pretraining seeds. All values are fractions in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsbench.errors import UsageError

Z95 = 1.96
"""The half-width of a 95 % interval in standard errors, as the papers use it."""


class Score(NamedTuple):
    """A mean of n outcomes and the half-width of its 95 % interval (nan below two outcomes)."""

    mean: float
    ci95: float
    n: int


class Paired(NamedTuple):
    """Mean of A - B over shared episodes, its standard error, and the two-sided p of no gap."""

    gap: float
    se: float
    p: float
    n: int

    @property
    def ci95(self) -> float:
        return Z95 * self.se


def score(values: ArrayLike) -> Score:
    """Mean and interval of per-episode accuracies (n,). Raises UsageError without any."""
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        raise UsageError("no outcomes to average", fix="evaluate at least one episode")
    half = Z95 * float(x.std(ddof=1)) / math.sqrt(x.size) if x.size > 1 else math.nan
    return Score(float(x.mean()), half, int(x.size))


def paired(
    a: Sequence[NDArray[np.float64]],
    b: Sequence[NDArray[np.float64]],
    draws: Sequence[str] = (),
) -> Paired:
    """Paired comparison over columns: the unweighted mean over columns of the mean of A - B.

    a, b: one array of per-episode accuracies a column; arrays of one column have equal length and
    the same episodes in the same order. draws: a name a column, equal for columns over the same
    episodes in the same order (other adaptations), whose gaps then move together; columns of other
    names, or without names, count as independent. The p-value is that of a z test; two equal
    entries give p = 1. Raises UsageError when the columns do not match.
    """
    if len(a) != len(b) or not a or any(x.shape != y.shape for x, y in zip(a, b, strict=True)):
        raise UsageError(
            "paired comparison needs the same episodes on both sides",
            fix="compare only columns that both entries hold, over their shared episode indices",
        )
    gaps = [
        np.asarray(x, np.float64) - np.asarray(y, np.float64) for x, y in zip(a, b, strict=True)
    ]
    gap = float(np.mean([g.mean() for g in gaps]))
    se = math.sqrt(sum(_error(group) ** 2 for group in _grouped(gaps, draws))) / len(gaps)
    return z_test(gap, se, int(sum(g.size for g in gaps)))


def z_test(gap: float, se: float, n: int) -> Paired:
    """A gap with its two-sided p; p is nan where the standard error is."""
    if se == 0.0:
        return Paired(gap, se, 1.0 if gap == 0.0 else 0.0, n)
    return Paired(gap, se, math.erfc(abs(gap) / se / math.sqrt(2.0)), n)


def holm(p: Sequence[float]) -> list[float]:
    """Return the p-values of one family of tests adjusted by Holm's step-down rule."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(x) for x in adjusted]


def overall_sd(gaps: Sequence[NDArray[np.float64]], draws: Sequence[str] = ()) -> float:
    """Per-episode standard deviation of the mean over columns, each with as many episodes.

    Over n episodes a column, its standard error is this over sqrt(n). draws: as in `paired`.
    """
    return math.sqrt(sum(_spread(group) ** 2 for group in _grouped(gaps, draws))) / len(gaps)


def _grouped(
    gaps: Sequence[NDArray[np.float64]], draws: Sequence[str]
) -> list[list[NDArray[np.float64]]]:
    """The columns over the same episodes together."""
    groups: dict[str | int, list[NDArray[np.float64]]] = {}
    for column, g in enumerate(gaps):
        groups.setdefault(draws[column] if draws else column, []).append(g)
    return list(groups.values())


def _spread(group: list[NDArray[np.float64]]) -> float:
    """Standard deviation of the sum of a group's gaps in one episode; nan for one episode.

    Columns of unequal length count as if their gaps moved together fully, which is the worst case.
    """
    if len({g.size for g in group}) > 1:
        return sum(_spread([g]) for g in group)
    total = np.sum(group, axis=0)
    return float(total.std(ddof=1)) if total.size > 1 else math.nan


def _error(group: list[NDArray[np.float64]]) -> float:
    """Standard error of the sum of a group's means, as `_spread`."""
    if len({g.size for g in group}) > 1:
        return sum(_error([g]) for g in group)
    return _spread(group) / math.sqrt(group[0].size)
