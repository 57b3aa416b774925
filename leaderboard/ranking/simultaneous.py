"""Adjusted p-values of gaps for all pairs of K rows at once: the rule `simultaneous-tiers-2`.

The leader of a table is the row with the best draw of episodes, so its gaps must be judged against
the largest gap that K equal rows show. The t statistic of a pair is its mean difference over shared
episodes by its standard error, with the degrees of freedom of Welch and Satterthwaite:

    FEW or more shared episodes   P(Q > |t| sqrt(2)), Q the studentized range of K rows
                                  (Games and Howell, J. Educational Statistics 1 (1976) 113-125)
    fewer                         K (K - 1) / 2 times Student's two-sided p (Bonferroni)

With few episodes the errors of the pairs differ by chance, and the first separates equal rows too
often: in 39 % of boards of 100 rows over 5 episodes. The second holds its level there and loses
power. `tests/benchmarks/tiers.py` prints level and power of both, of the older rule and of the
model confidence set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fsbench.core.statistics import Paired

FEW = 100
"""Shared episodes of a column from which on the studentized range is used."""

Numbers = NDArray[np.float64]

STEP, WIDEST = 0.005, 40.0
"""Grid of ranges whose probabilities are stored, in standard deviations."""
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
"""Gauss-Hermite quadrature over the standard deviation that scales the range."""


def adjust_gaps(gaps: Sequence[Paired], rows: int) -> list[float]:
    """Return p-values adjusted for all pairs of `rows` rows; nan for a gap without a finite error.

    A gap of zero has p = 1, another one without any spread p = 0.
    """
    gap, se, freedom, fewest = (
        np.array([getattr(g, name) for g in gaps], np.float64)
        for name in ("gap", "se", "freedom", "fewest")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(gap == 0, 0.0, np.abs(gap) / se)
    p = np.where(np.isfinite(se), np.where(np.isinf(t), 0.0, 1.0), math.nan)
    tested = np.isfinite(t) & np.isfinite(se) & (t > 0)
    many, few = tested & (fewest >= FEW), tested & (fewest < FEW)
    p[many] = exceed_range(t[many] * math.sqrt(2), rows, freedom[many])
    if few.any():
        p[few] = exceed_student(t[few], rows, freedom[few])
    return [float(value) for value in p]


def exceed_student(t: Numbers, rows: int, freedom: Numbers) -> Numbers:
    """Return Bonferroni's bound for all pairs of the two-sided p of Student's t."""
    from scipy.special import stdtr

    pairs = rows * (rows - 1) / 2
    return np.minimum(1.0, pairs * 2 * np.asarray(stdtr(freedom, -t), np.float64))


def exceed_range(q: Numbers, rows: int, freedom: Numbers) -> Numbers:
    """Return the probability that the studentized range exceeds q (N,).

    scipy.stats.studentized_range gives the same within 1e-5 but integrates each value anew, which
    takes minutes on a board of 1,000 entries. The scale, sqrt(chi2 / freedom), is averaged by
    Gauss-Hermite quadrature over Wilson's and Hilferty's normal approximation.
    """
    ranges, beyond = tabulate_ranges(rows)
    spread = 2 / (9 * freedom[:, None])
    scales = np.maximum(1 - spread + NODES * np.sqrt(spread), 0) ** 1.5
    p = np.interp(q[:, None] * scales, ranges, beyond) @ NODE_WEIGHTS / NODE_WEIGHTS.sum()
    return np.asarray(np.clip(p, 0.0, 1.0), np.float64)


@lru_cache(maxsize=16)
def tabulate_ranges(rows: int) -> tuple[Numbers, Numbers]:
    """Return ranges w, and the probability that `rows` standard normals differ by more than w.

    It is 1 - K integral phi(z) (Phi(z) - Phi(z - w))^(K - 1) dz, by the trapezoid rule.
    """
    stride, ends = 20, 9.0
    lattice = np.arange(-ends - WIDEST, ends + STEP / 2, STEP)
    below = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in lattice])
    first = round(WIDEST / STEP)
    z = np.arange(first, lattice.size, stride)
    density = np.exp(-(lattice[z] ** 2) / 2) / math.sqrt(2 * math.pi) * STEP * stride
    ranges = np.arange(first + 1)
    beyond = np.empty(ranges.size)
    for block in np.array_split(ranges, 40):
        inside = below[z] - below[z - block[:, None]]
        beyond[block] = 1 - rows * (inside ** (rows - 1) @ density)
    return np.asarray(ranges * STEP, np.float64), np.clip(beyond, 0.0, 1.0)
