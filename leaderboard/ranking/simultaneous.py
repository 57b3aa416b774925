"""Adjusted p-values of gaps for all pairs of K rows at once: the rule `simultaneous-tiers-2`.

The leader of a table is the row with the best draw of episodes, so its gaps must be judged against
the largest gap that K equal rows show. The t statistic of a pair is its mean difference over shared
episodes by its standard error, with the degrees of freedom of Welch and Satterthwaite:

    FEW or more shared episodes   P(Q > z sqrt(2)), Q the range of K standard normals, z the normal
                                  deviate that is as unlikely as t
    fewer, or fewer degrees of    K (K - 1) / 2 times Student's two-sided p (Bonferroni)
    freedom, as with few seeds

The first is Tukey's test with an error for each pair. Games and Howell (J. Educ. Statistics 1,
1976, 113-125) compare t sqrt(2) with the studentized range instead, as if all pairs had one error:
their level is .06 for 100 rows over 100 episodes and .39 over 5. With few episodes the second one
holds its level and loses power (tests/benchmarks/tiers.py).
"""

import math
from functools import lru_cache

import numpy as np

from leaderboard.ranking.gaps import Gaps, Numbers

FEW = 100
"""Shared episodes of a column from which on the studentized range is used."""

STEP, WIDEST = 0.005, 40.0
"""Grid of ranges whose probabilities are stored, in standard deviations."""


def adjust_gaps(gaps: Gaps, rows: int) -> Numbers:
    """Return p (N,) adjusted for all pairs of `rows` rows; nan for a gap without a finite error.

    A gap of zero has p = 1, another one without any spread p = 0.
    """
    se, freedom = gaps.se, gaps.freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(gaps.gap == 0, 0.0, np.abs(gaps.gap) / se)
    p = np.where(np.isfinite(se), np.where(np.isinf(t), 0.0, 1.0), math.nan)
    tested = np.isfinite(t) & np.isfinite(se) & (t > 0)
    many = tested & (gaps.fewest >= FEW) & (freedom >= FEW - 1)
    few = tested & ~many
    if many.any():
        p[many] = exceed_range(t[many], rows, freedom[many])
    if few.any():
        p[few] = exceed_student(t[few], rows, freedom[few])
    return p


def exceed_student(t: Numbers, rows: int, freedom: Numbers) -> Numbers:
    """Return Bonferroni's bound for all pairs of the two-sided p of Student's t."""
    from scipy.special import stdtr

    pairs = rows * (rows - 1) / 2
    return np.minimum(1.0, pairs * 2 * np.asarray(stdtr(freedom, -t), np.float64))


def exceed_range(t: Numbers, rows: int, freedom: Numbers) -> Numbers:
    """Return the probability that the range of `rows` normals exceeds sqrt(2) times t (N,).

    t is replaced by the normal deviate of equal p, by D. L. Wallace's formula (Annals of
    Mathematical Statistics 30, 1959, 1124-1130), good to 1 % of p from 99 degrees of freedom on.
    """
    ranges, beyond = tabulate_ranges(rows)
    deviates = np.sqrt(freedom * np.log1p(t**2 / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.interp(deviates * math.sqrt(2), ranges, beyond)


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
