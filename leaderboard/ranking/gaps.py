"""Gaps of one row over many, and intervals of a gap whose variance is estimated.

The variance of a gap is a sum of estimates v_i with f_i degrees of freedom: of the seeds of one or
two rows, and of the episodes. Its interval of level 1 - a has the half-width

    sqrt( sum_i  t(f_i, 1 - a/2)^2  v_i )

and p is the a at which that is the gap (Banerjee, Sankhya 22, 1960, 357). It holds for any true
variances, since P(Z^2 <= x) is concave in x; Satterthwaite's fails where two seeds agree by chance.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.statistics import Paired

Numbers = NDArray[np.float64]
Estimate = tuple[float, float]
"""A variance and its degrees of freedom."""


class StudentInterval(NamedTuple):
    """Half-width of a 95 % interval, and two-sided p of the value zero; nan if unknown."""

    ci95: float
    p: float


def compute_student_interval(value: float, se: float, freedom: float) -> StudentInterval:
    """Return the interval and p of Student's t distribution."""
    return compute_joint_interval(value, [(se**2, freedom)])


def compute_half(estimates: Sequence[Estimate], tail: float = 0.025) -> float:
    """Return the half-width of an interval with these tails; the variance is a sum of estimates."""
    from scipy.special import stdtrit

    variances, freedoms = np.array(estimates, np.float64).T
    quantiles = stdtrit(np.clip(freedoms, 1, 1e6), tail)
    return math.sqrt(float(np.maximum(variances, 0) @ quantiles**2))  # nan stays


def compute_joint_interval(value: float, estimates: Sequence[Estimate]) -> StudentInterval:
    """Return the interval and p of a value whose variance is the sum of these estimates."""
    from scipy.special import stdtr

    variance = sum(v for v, _ in estimates)
    if math.isnan(variance):
        return StudentInterval(math.nan, math.nan)
    if variance == 0.0:
        return StudentInterval(0.0, float(value == 0.0))
    t = abs(value) / math.sqrt(variance)
    freedoms = np.clip([freedom for v, freedom in estimates if v > 0], 1, 1e6)
    low, high = np.maximum(np.sort(stdtr(freedoms, -t))[[0, -1]], 1e-300)  # not zero
    while high > low * (1 + 1e-9):  # the half-width falls as its tails grow
        middle = math.sqrt(low) * math.sqrt(high)  # their product may be too small for a float
        is_wide = compute_half(estimates, middle) > abs(value)
        low, high = (middle, high) if is_wide else (low, middle)
    return StudentInterval(compute_half(estimates), 2 * float(high))


@dataclass(frozen=True, eq=False)
class Gaps(Mapping[str, Paired]):
    """Gaps of a row over the rows `names`: arrays (N,) of the fields of Paired, which it maps to.

    has_seeds (N,): whether an error contains the variance of seeds; p and interval are then of
    Student's t.
    """

    names: tuple[str, ...]
    gap: Numbers
    se: Numbers
    freedom: Numbers
    n: Numbers
    fewest: Numbers
    has_seeds: NDArray[np.bool_]

    @cached_property
    def rows(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Paired:
        i = self.rows[name]
        gap, se, freedom = float(self.gap[i]), float(self.se[i]), float(self.freedom[i])
        paired = statistics.z_test(gap, se, int(self.n[i]), freedom, int(self.fewest[i]))
        if self.has_seeds[i]:
            half, p = compute_student_interval(gap, se, freedom)
            return paired._replace(p=p, half=half)
        return paired._replace(p=1.0) if math.isnan(paired.p) else paired

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
