"""Pretraining seeds of a row: its mean over them, and what they add to errors.

Seeds and episodes are two crossed random factors:

    y[s, e] = mean + a[s] + b[e] + r[s, e]

with independent variances: a of the pretraining seeds, b of the episodes that all seeds share, r of
the rest. They are estimated by the mean squares of the two-way table without replication, negative
estimates set to zero (Searle, Casella, McCulloch, Variance Components, 1992, chapter 4):

    seeds = (MS_s - MS_r) / E      episodes = (MS_e - MS_r) / S      residual = MS_r

The mean of S seeds over E episodes has the variance MS_s / (S E) + (MS_e - MS_r) / (S E). Intervals
of means and of gains take the first part with S - 1 degrees of freedom, the second with E - 1, so
that they hold for any spread between seeds (gaps.py).

The gap of two rows has the seed variances of both and the paired variance of the episodes. Three
rows or more of several seeds are pooled: with v the variance between the seeds of each, on f
degrees of freedom,

    row of several seeds   the larger one of its own v and  sum(f v) / sum(f)
    row of one seed        sum(f v^2) / sum(f v), the mean of v weighted by v
    degrees of freedom     sum(f v)^2 / sum(f v^2), by Satterthwaite: few where spreads differ

and those of a gap by Satterthwaite again. Below three such rows each has its own variance, on S - 1
degrees of freedom; a row of one seed beside it takes the variance of one run of it, and p is of
Student's t with the degrees of freedom that give the interval of gaps.py.

board.json names the rows that are pooled (`pooled`) as soon as there are three, so that no entry
that comes later changes the errors of others. `tests/benchmarks/tiers.py` prints levels.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.statistics import Paired, Score
from leaderboard.ranking.gaps import (
    Estimate,
    Gaps,
    Numbers,
    StudentInterval,
    compute_half,
    compute_joint_interval,
)
from leaderboard.ranking.outcomes import Outcomes

Columns = Sequence[NDArray[np.float64]]
"""Outcomes of one seed: one array (n,) per column, over the same episodes for all seeds."""
Coverage = Literal["episodes", "seeds and episodes", "pooled seeds and episodes"]
"""Sources of error in an interval. pooled: the seed variance is that of rows with several seeds."""
FEWEST_POOLED = 3
"""Rows with several seeds that a pooled variance needs."""
MANY = 1e6
"""More degrees of freedom are taken for so many."""
ROWS = 64
"""Rows measured at once: their accuracies take eight times the memory of their counts."""


class PooledSpread(NamedTuple):
    """Variance between the seeds of one row, pooled over rows, and its degrees of freedom.

    variance: for a row of one seed; least: for a row of several seeds.
    """

    variance: float
    freedom: float
    least: float


class SeedPart(NamedTuple):
    """Seed variance of a row's mean; residual: how much of it the error over episodes contains.

    freedom: degrees of freedom, infinite for a row without an estimate; seeds: of the row.
    """

    variance: float
    residual: float = 0.0
    freedom: float = math.inf
    seeds: int = 1

    def fill(self, other: "SeedPart") -> "SeedPart":
        """Return the part of a single run of the other row if this row has no estimate."""
        run = other.variance * other.seeds, other.residual * other.seeds, other.freedom
        lacks = np.isinf(self.freedom)
        parts: list[Any] = [np.where(lacks, a, b) for a, b in zip(run, self, strict=False)]
        return SeedPart(*parts)


def average_columns(columns: Columns) -> float:
    return float(np.mean([column.mean() for column in columns]))


class SeedEstimate(NamedTuple):
    """What the seeds of a row show: the variance of their means, and MS_r / (S E).

    fewest: outcomes of the column with the fewest.
    """

    spread: float
    residual: float
    seeds: int
    fewest: int

    @property
    def between(self) -> float:
        """MS_s / (S E), the variance of a mean over seeds, at least the residual."""
        return max(self.spread / self.seeds, self.residual)

    @property
    def component(self) -> float:
        """The variance component of the seeds in the mean over columns."""
        return max(0.0, self.spread - self.seeds * self.residual)


def estimate_sides(
    sides: Sequence[Sequence[Columns]], draws: Sequence[Sequence[str]]
) -> list[SeedEstimate]:
    """Return the estimate of each row, all at once.

    sides: the seeds of each row, two or more; draws: of its columns, as in
    `fsbench.core.statistics.paired`.
    """
    rest: list[Columns] = []
    means = []
    for side in sides:
        columns = [np.stack(column) for column in zip(*side, strict=True)]
        means.append(np.mean([column.mean(axis=1) for column in columns], axis=0))
        rest += zip(*(column - column.mean(axis=0) for column in columns), strict=True)
    names = [of_row for side, of_row in zip(sides, draws, strict=True) for _ in side]
    errors = iter(statistics.measure_rows(rest, names))
    estimates = []
    for side, of_seeds in zip(sides, means, strict=True):
        n, fewest = len(side), min(column.size for column in side[0])
        unexplained = sum(next(errors).se ** 2 for _ in side)
        spread = float(of_seeds.var(ddof=1))
        estimates.append(SeedEstimate(spread, unexplained / (n * (n - 1)), n, fewest))
    return estimates


def pool_seed_variances(estimates: Iterable[SeedEstimate]) -> PooledSpread | None:
    """Return the pooled spread in the mean over columns; None for fewer than three rows with it."""
    rows = [estimate for estimate in estimates if estimate.fewest > 1]
    if len(rows) < FEWEST_POOLED:
        return None
    freedoms = np.array([row.seeds - 1 for row in rows], np.float64)
    variances = np.array([row.component for row in rows])
    total, squares = float(freedoms @ variances), float(freedoms @ variances**2)
    if total == 0:
        return PooledSpread(0.0, float(freedoms.sum()), 0.0)
    return PooledSpread(squares / total, total**2 / squares, total / float(freedoms.sum()))


def list_variances(sides: Sequence[SeedEstimate], se_episodes: float) -> list[Estimate]:
    """Return the variances in a value over seeds and episodes, with their degrees of freedom.

    sides: one for a mean and for gains paired by seed, two independent ones otherwise; se_episodes:
    standard error over episodes for these seeds.
    """
    seeds: list[Estimate] = [(side.between, side.seeds - 1) for side in sides]
    episodes = max(se_episodes**2 - sum(side.residual for side in sides), 0.0)  # NaN, if first
    return [*seeds, (episodes, sides[0].fewest - 1)]


def compute_seed_interval(
    value: float, sides: Sequence[Sequence[Columns]], se_episodes: float, draws: Sequence[str]
) -> StudentInterval:
    """Return the interval of a value over seeds and episodes; sides: seeds of each."""
    estimates = estimate_sides(sides, [draws] * len(sides))
    return compute_joint_interval(value, list_variances(estimates, se_episodes))


def list_pooled_variances(
    paired: Paired, sides: Sequence[int], pooled: PooledSpread
) -> list[Estimate]:
    """Return the variances of a gap between sides of these numbers of seeds, with freedoms."""
    between = pooled.variance * sum(1 / n for n in sides)
    return [(between, pooled.freedom), (paired.se**2, paired.freedom)]


def split_rows(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the names of rows that are measured at once."""
    return (names[low : low + ROWS] for low in range(0, len(names), ROWS))


class SeedErrors:
    """Seed part of the errors of rows; outcomes: row -> outcomes of the columns, in order."""

    def __init__(self, outcomes: Mapping[str, Sequence[Outcomes]]) -> None:
        self.outcomes = outcomes
        rows = outcomes.items()
        self.several = {row for row, columns in rows if columns and columns[0].n_seeds > 1}

    def list_draws(self, row: str) -> list[str]:
        return [column.draws for column in self.outcomes[row]]

    def list_seeds(self, row: str) -> list[Columns]:
        """Return the outcomes of each seed."""
        return list(zip(*(column.by_seed for column in self.outcomes[row]), strict=True))

    @cached_property
    def pooled(self) -> PooledSpread | None:
        rows = self.estimates.items()
        return pool_seed_variances(e for row, e in rows if self.outcomes[row][0].is_pooled)

    @cached_property
    def estimates(self) -> dict[str, SeedEstimate]:
        """Row with several seeds -> what these show."""
        estimates: dict[str, SeedEstimate] = {}
        for rows in split_rows([row for row in self.outcomes if row in self.several]):
            seeds = [self.list_seeds(row) for row in rows]
            estimated = estimate_sides(seeds, [self.list_draws(row) for row in rows])
            estimates |= zip(rows, estimated, strict=True)
        return estimates

    @cached_property
    def means(self) -> dict[str, Paired]:
        """Row -> mean over columns with its error over episodes."""
        means: dict[str, Paired] = {}
        for rows in split_rows(list(self.outcomes)):
            values = [[o.values for o in self.outcomes[row]] for row in rows]
            measured = statistics.measure_rows(values, [self.list_draws(row) for row in rows])
            means |= zip(rows, measured, strict=True)
        return means

    def find_coverage(self, row: str) -> Coverage:
        """Return what the interval of a row covers."""
        if row in self.several:
            return "seeds and episodes"
        return "pooled seeds and episodes" if self.pooled else "episodes"

    @cached_property
    def scores(self) -> dict[str, Score]:
        """Row -> mean over seeds and columns, with the interval of the row's own seeds."""
        plain = {
            row: columns[0].values
            for row, columns in self.outcomes.items()
            if len(columns) == 1 and self.find_coverage(row) == "episodes"
        }
        of_plain = statistics.score_rows(list(plain.values()))
        measured = dict(zip(plain, of_plain, strict=True))
        return {row: measured.get(row) or self.score_row(row) for row in self.outcomes}

    def score_row(self, row: str) -> Score:
        mean = self.means[row]
        half = mean.ci95
        if row in self.several:
            half = compute_half(list_variances([self.estimates[row]], mean.se))
        elif self.pooled:
            half = compute_half(list_pooled_variances(mean, (1,), self.pooled))
        return Score(mean.gap, half, mean.n)

    @cached_property
    def parts(self) -> dict[str, SeedPart]:
        """Row -> seed variance of its mean; none for one seed without a pooled variance."""
        return {row: self.estimate_part(row) for row in self.outcomes}

    def estimate_part(self, row: str) -> SeedPart:
        pooled = self.pooled
        if row not in self.several:
            return SeedPart(pooled.variance, 0.0, pooled.freedom) if pooled else SeedPart(0.0)
        estimate = self.estimates[row]
        if pooled is None:
            return SeedPart(estimate.between, estimate.residual, estimate.seeds - 1, estimate.seeds)
        least = pooled.least / estimate.seeds + estimate.residual
        return SeedPart(max(estimate.between, least), estimate.residual, pooled.freedom)

    def widen_gaps(self, row: str, gaps: Gaps) -> Gaps:
        """Return the gaps of a row with the variance of the seeds of both sides."""
        if not (self.several and gaps):
            return gaps
        a, b = self.parts[row], SeedPart(*np.array([self.parts[name] for name in gaps]).T)
        has_seeds = (np.asarray(a.variance + b.variance) != 0) & ~np.isnan(gaps.se)
        with np.errstate(invalid="ignore", divide="ignore"):  # where no side has seeds
            se, freedom = add_seed_variance(a, b, gaps.se, gaps.freedom, self.pooled is not None)
        return replace(
            gaps,
            se=np.where(has_seeds, se, gaps.se),
            freedom=np.where(has_seeds, freedom, gaps.freedom),
            has_seeds=has_seeds,
        )


def add_seed_variance(
    a: SeedPart, b: SeedPart, error: Numbers, freedom: Numbers | float, is_pooled: bool
) -> tuple[Numbers, Numbers]:
    """Return the error of a gap with the variance of the seeds of both rows, and its freedom.

    error, freedom: over episodes. Arrays are taken element by element. Without a pooled variance
    the degrees of freedom are those with which Student's 95 % interval is the one of gaps.py.
    """
    from scipy.special import stdtridf, stdtrit

    a, b = a.fill(b), b.fill(a)
    episodes = np.maximum(0.0, error**2 - a.residual - b.residual)
    variance = np.asarray(a.variance + b.variance + episodes, np.float64)
    if is_pooled:
        squares = (a.variance + b.variance) ** 2 / a.freedom + episodes**2 / np.maximum(freedom, 1)
        return np.sqrt(variance), np.asarray(np.minimum(variance**2 / squares, MANY), np.float64)
    estimates = ((a.variance, a.freedom), (b.variance, b.freedom), (episodes, freedom))
    tails = sum(v * stdtrit(np.clip(f, 1, MANY), 0.975) ** 2 for v, f in estimates)
    ratio = np.maximum(np.sqrt(tails / variance), stdtrit(MANY, 0.975))
    return np.sqrt(variance), np.asarray(stdtridf(0.975, ratio), np.float64)
