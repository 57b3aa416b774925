"""False stars of a method board without gains: `PYTHONPATH=tests python -m benchmarks.gains`.

Each line is one setting: seeds of every row, their spread in points, methods, whether gains are
paired by seed (over `normal`) or not (over random initializations), and whether all spreads are
equal. Unequal: every second method has the spread, the others and the control a tenth of it.

    stars     share of boards with a star (at most .05 is wanted)
    covered   share of gains whose 95 % interval contains the truth

Means over 600 episodes are drawn, and the mean squares of episodes and residual as chi-squares. The
worst of spreads of .2, 1 and 3 points and of 1, 5 and 25 methods, over 2,000 boards each:

    seeds  spreads  paired  stars  covered
    2      equal    yes     .037    .962
    2      equal    no      .003    .994
    2      unequal  yes     .030    .970
    2      unequal  no      .019    .981
    3      equal    yes     .040    .949
    3      equal    no      .013    .986
    3      unequal  yes     .043    .958
    3      unequal  no      .046    .954
    5      equal    yes     .051    .949
    5      equal    no      .030    .970
    5      unequal  yes     .054    .946
    5      unequal  no      .052    .948
"""

import argparse
import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.gaps import compute_joint_interval
from leaderboard.ranking.tiers import ALPHA

Matrix = NDArray[np.float64]
EPISODES = 600
SHARED, REST = 0.06**2 * 0.5 / EPISODES, 0.06**2 * 0.5 / EPISODES
"""Variance over episodes of a row's mean: what its seeds share, and the rest of one seed."""


class Setting(NamedTuple):
    """A kind of board; spread: standard deviation between seeds, a fraction."""

    seeds: int
    spread: float
    methods: int
    is_paired: bool
    is_equal: bool


class Gains(NamedTuple):
    """Gains (B, M) of B boards with M methods, of which all true values are zero.

    between: seed variances of the mean, (sides, B, M); episodes: variance that seeds do not have.
    """

    gap: Matrix
    between: Matrix
    episodes: Matrix


class Rates(NamedTuple):
    """Share of boards with a star, and of gains whose interval contains zero."""

    stars: float
    covered: float


def simulate(setting: Setting, boards: int, rng: np.random.Generator) -> Gains:
    seeds, shape = setting.seeds, (boards, setting.methods)
    narrow = setting.spread if setting.is_equal else setting.spread / 10
    spreads = np.where(np.arange(shape[1]) % 2 == 0, setting.spread, narrow)

    def draw(spread: float | Matrix, rows: int) -> Matrix:
        sd = np.sqrt(np.square(spread) + REST)
        return sd * rng.normal(size=(seeds, boards, rows))

    def draw_square(freedom: int) -> Matrix:
        return rng.chisquare(freedom, shape) / freedom

    ours, theirs = draw(spreads, shape[1]), draw(narrow, 1)
    gap = (ours - theirs).mean(axis=0)
    gap += rng.normal(0, math.sqrt(SHARED), shape) + rng.normal(0, math.sqrt(SHARED), (boards, 1))
    sides = [ours - theirs] if setting.is_paired else [ours, theirs + np.zeros(ours.shape)]
    rest = 2 * REST / seeds * draw_square((seeds - 1) * (EPISODES - 1))
    episodes = (2 * SHARED + 2 * REST / seeds) * draw_square(EPISODES - 1)
    between = np.stack([side.var(axis=0, ddof=1) / seeds for side in sides])
    between = np.maximum(between, rest / len(sides))
    return Gains(gap, between, np.maximum(episodes - rest, 0.0))


def judge(gains: Gains, seeds: int) -> Rates:
    """Return the rates of the board's rule: by Holm's correction a star needs the smallest p."""
    p, covered = np.empty(gains.gap.shape), np.empty(gains.gap.shape)
    for i, gap in np.ndenumerate(gains.gap):
        estimates = [(v, seeds - 1) for v in gains.between[:, *i]]
        episodes = (gains.episodes[i], EPISODES - 1)
        half, p[i] = compute_joint_interval(gap, [*estimates, episodes])
        covered[i] = abs(gap) <= half
    stars = p.min(axis=1) * p.shape[1] < ALPHA
    return Rates(float(stars.mean()), float(covered.mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--boards", type=int, default=2000)
    options = parser.parse_args()
    head = ("seeds", "spread", "methods", "paired", "equal", "stars", "covered")
    print(" ".join(f"{name:>7}" for name in head))
    parts = ((2, 3, 5), (0.002, 0.01, 0.03), (1, 5, 25), (True, False), (True, False))
    for setting in itertools.starmap(Setting, itertools.product(*parts)):
        rng = np.random.default_rng([round(1000 * float(value)) for value in setting])
        gains = simulate(setting, options.boards, rng)
        rates = [f"{rate:.3f}" for rate in judge(gains, setting.seeds)]
        seeds, spread, *rest = setting
        values = [str(seeds), f"{100 * spread:g}", *map(str, rest), *rates]
        print(" ".join(f"{value:>7}" for value in values), flush=True)


if __name__ == "__main__":
    main()
