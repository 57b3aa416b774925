"""Gaps of one row over many, and Student's interval of a gap."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.statistics import Paired

Numbers = NDArray[np.float64]


class StudentInterval(NamedTuple):
    """Half-width of a 95 % interval, and two-sided p of the value zero; nan if unknown."""

    ci95: float
    p: float


def compute_student_interval(value: float, se: float, freedom: float) -> StudentInterval:
    """Return the interval and p of Student's t distribution."""
    from scipy.special import stdtr, stdtrit

    freedom = min(freedom, 1e6)
    p = 2 * float(stdtr(freedom, -abs(value) / se))
    return StudentInterval(se * float(stdtrit(freedom, 0.975)), p)


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
    def places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Paired:
        i = self.places[name]
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
