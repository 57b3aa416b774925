"""False stars of a method board without gains: `PYTHONPATH=tests python -m benchmarks.gains`.

Each line is one setting: seeds of every row, their spread in points, methods, whether gains are
paired by seed (over `normal`) or not (over random initializations), and whether all spreads are
equal. Unequal: every second method has the spread, the others and the control a tenth of it.

    stars     share of boards with a star (at most .05 is wanted)
    covered   share of gains whose 95 % interval contains the truth

Means over 600 episodes are drawn, and the mean squares of episodes and residual as chi-squares.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from benchmarks.pairing import make_parser
from numpy.typing import NDArray

from leaderboard.ranking.gaps import compute_joint_interval
from leaderboard.ranking.tiers import ALPHA

Matrix = NDArray[np.float64]
EPISODES = 600
VARIANCE = 0.06**2 * 0.5 / EPISODES
"""Variance over episodes of a row's mean: what its seeds share, and as much of each seed alone."""


class Setting(NamedTuple):
    """A kind of board; spread: standard deviation between seeds, a fraction."""

    seeds: int
    spread: float
    methods: int
    is_paired: bool
    is_equal: bool


class Rates(NamedTuple):
    """Share of boards with a star, and of gains whose interval contains zero."""

    stars: float
    covered: float


def measure(setting: Setting, boards: int, rng: np.random.Generator) -> Rates:
    """Return the rates of the board's rule on boards whose true gains are zero.

    By Holm's correction a star needs the smallest p.
    """
    seeds, shape = setting.seeds, (boards, setting.methods)
    narrow = setting.spread if setting.is_equal else setting.spread / 10
    spreads = np.where(np.arange(shape[1]) % 2 == 0, setting.spread, narrow)

    def draw(spread: float | Matrix, rows: int) -> Matrix:
        return np.sqrt(np.square(spread) + VARIANCE) * rng.normal(size=(seeds, boards, rows))

    def draw_square(freedom: int) -> Matrix:
        return rng.chisquare(freedom, shape) / freedom

    ours, theirs = draw(spreads, shape[1]), draw(narrow, 1)
    gaps = (ours - theirs).mean(axis=0)
    gaps += math.sqrt(VARIANCE) * (rng.normal(size=shape) + rng.normal(size=(boards, 1)))
    sides = [ours - theirs] if setting.is_paired else [ours, theirs + np.zeros(ours.shape)]
    rest = 2 * VARIANCE / seeds * draw_square((seeds - 1) * (EPISODES - 1))
    episodes = 2 * VARIANCE * (1 + 1 / seeds) * draw_square(EPISODES - 1)
    between = np.stack([side.var(axis=0, ddof=1) / seeds for side in sides])
    between = np.maximum(between, rest / len(sides))
    episodes = np.maximum(episodes - rest, 0.0)  # what seeds do not have

    p, covered = np.empty(shape), np.empty(shape)
    for i, gap in np.ndenumerate(gaps):
        estimates = [(v, seeds - 1) for v in between[:, *i]] + [(episodes[i], EPISODES - 1)]
        half, p[i] = compute_joint_interval(gap, estimates)
        covered[i] = abs(gap) <= half
    stars = p.min(axis=1) * p.shape[1] < ALPHA
    return Rates(float(stars.mean()), float(covered.mean()))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--boards", type=int, default=2000)
    options = parser.parse_args()
    line = "{:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}"
    print(line.format("seeds", "spread", "methods", "paired", "equal", "stars", "covered"))
    parts = ((2, 3, 5), (0.002, 0.01, 0.03), (1, 5, 25), (True, False), (True, False))
    for setting in itertools.starmap(Setting, itertools.product(*parts)):
        rng = np.random.default_rng([round(1000 * float(value)) for value in setting])
        rates = [f"{rate:.3f}" for rate in measure(setting, options.boards, rng)]
        seeds, spread, *rest = setting
        print(line.format(seeds, f"{100 * spread:g}", *map(str, rest), *rates), flush=True)


if __name__ == "__main__":
    main()
