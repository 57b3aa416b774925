"""Episodes that a paired comparison needs, by the z test that ranks entries
(fsbench/core/statistics.py).

The difference A - B of two accuracies over shared episodes has a standard deviation `sd`; the
standard error of its mean over n episodes is sd / sqrt(n). All values are fractions.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

from fsbench.core.errors import UsageError
from fsbench.core.specs import Frozen


class Goal(Frozen):
    """The difference that a comparison must be able to detect.

    gap: mean difference, a fraction; alpha: level of the two-sided test; power: probability that
    the test detects the gap.
    """

    gap: float
    alpha: float = 0.05
    power: float = 0.8

    def require_possible(self) -> None:
        """Raise UsageError for values that no test can have."""
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
    """Return the number of episodes per task, at least two."""
    return max(2, math.ceil((standard_errors(goal) * sd / goal.gap) ** 2))


def detectable(sd: float, n: int, goal: Goal) -> float:
    """Return the gap that n episodes per task detect with the goal's alpha and power."""
    return standard_errors(goal) * sd / math.sqrt(n)


@cache
def standard_errors(goal: Goal) -> float:
    """Return the gap, in standard errors, that the z test finds with the goal's power.

    It solves power = P(Z > z - d) + P(Z < -z - d) for d, with z the two-sided critical value: 2.80
    for the defaults.
    """
    from scipy.optimize import brentq

    normal = NormalDist()
    z = normal.inv_cdf(1 - goal.alpha / 2)
    upper = z + normal.inv_cdf(goal.power) + 1  # one side alone has the power at upper - 1
    return float(brentq(lambda d: normal.cdf(d - z) + normal.cdf(-z - d) - goal.power, 0, upper))
