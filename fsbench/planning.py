"""How many episodes a paired comparison needs, by the z test that ranks entries (fsbench/stats.py).

The difference A - B of two accuracies over shared episodes has a standard deviation `sd`; its mean
over n episodes has sd / sqrt(n). statsmodels solves for what is asked. All values are fractions.
"""

from __future__ import annotations

import math
from functools import cache

from fsbench.errors import UsageError
from fsbench.specs import Frozen


class Goal(Frozen):
    """gap: to be told apart (a fraction); alpha: of the two-sided test; power: probability that the
    test finds the gap."""

    gap: float
    alpha: float = 0.05
    power: float = 0.8

    def require_possible(self) -> None:
        """Raises UsageError for values that no test can have."""
        if not 0 < self.gap < 1:
            raise UsageError(
                f"a gap of {100 * self.gap:g} points", fix="give one above 0, e.g. 0.5"
            )
        if not 0 < self.alpha < self.power < 1:
            raise UsageError(
                f"alpha {self.alpha:g} and power {self.power:g}",
                fix="give 0 < alpha < power < 1, e.g. --alpha 0.05 --power 0.8",
            )


def episodes_needed(sd: float, goal: Goal) -> int:
    """Episodes a cell, at least two."""
    return max(2, math.ceil((standard_errors(goal) * sd / goal.gap) ** 2))


def detectable(sd: float, n: int, goal: Goal) -> float:
    """The gap that n episodes a cell tell apart with the goal's alpha and power."""
    return standard_errors(goal) * sd / math.sqrt(n)


@cache
def standard_errors(goal: Goal) -> float:
    """How many standard errors a gap must have: 2.80 for the defaults, by statsmodels."""
    from statsmodels.stats.power import NormalIndPower

    one_sample = NormalIndPower(ddof=0)  # with ratio=0
    found = one_sample.solve_power(nobs1=1.0, alpha=goal.alpha, power=goal.power, ratio=0)
    return float(found)
