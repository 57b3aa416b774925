"""Pretraining seeds of a row: its mean over them, and what they add to errors.

Seeds and episodes are two crossed random factors:

    y[s, e] = mean + a[s] + b[e] + r[s, e]

with independent variances: a of the pretraining seeds, b of the episodes that all seeds share, r of
the rest. They are estimated by the mean squares of the two-way table without replication, negative
estimates set to zero (ANOVA estimators of balanced data: Searle, Casella, McCulloch, Variance
Components, 1992, chapter 4; Montgomery, Design and Analysis of Experiments, random factors):

    seeds = (MS_s - MS_r) / E      episodes = (MS_e - MS_r) / S      residual = MS_r

The mean of S seeds over E episodes has the variance (MS_s + MS_e - MS_r) / (S E); its interval is a
t interval with Satterthwaite's degrees of freedom, which is wide for few seeds.

The gap of two rows has the seed variances of both and the paired variance of the episodes. Where
three rows or more have several seeds, a row of one seed has the pooled variance of those rows, and
a row of several seeds the larger one of the pooled variance and its own, with the pooled degrees of
freedom. The larger one, since pooling alone fails where seeds of some rows differ more than those
of others. Below three such rows each has its own variance, and a gap the degrees of freedom of the
side with fewer seeds: Satterthwaite's sum is too many for two seeds. A row of one seed beside a row
of several takes the variance of a single run of that row, and the gap has the degrees of freedom
whose t quantile is the mean of those of seeds and episodes, weighted by their variances (Cochran's
approximation to the Behrens-Fisher test: Snedecor, Cochran, Statistical Methods, comparison of two
means with unequal variances). A gap of two rows of one seed covers episodes only.
`tests/benchmarks/tiers.py` prints levels.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.statistics import Paired, Score
from leaderboard.ranking.gaps import Gaps, Numbers, StudentInterval, compute_student_interval
from leaderboard.ranking.outcomes import Outcomes

Columns = Sequence[NDArray[np.float64]]
"""Outcomes of one seed: one array (n,) per column, over the same episodes for all seeds."""
Coverage = Literal["episodes", "seeds and episodes", "pooled seeds and episodes"]
"""Sources of error in an interval. pooled: the seed variance is that of rows with several seeds."""
FEWEST_POOLED = 3
"""Rows with several seeds that a pooled variance needs."""
ROWS = 64
"""Rows measured at once: their accuracies take eight times the memory of their counts."""


class PooledSpread(NamedTuple):
    """Variance between the seeds of one row, pooled over rows, and its degrees of freedom."""

    variance: float
    freedom: int


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


def average_seeds(side: Sequence[Columns]) -> list[NDArray[np.float64]]:
    """Return the mean over seeds of every outcome, column by column."""
    return [np.mean(column, axis=0) for column in zip(*side, strict=True)]


def average_columns(columns: Columns) -> float:
    return float(np.mean([column.mean() for column in columns]))


def estimate_residual(side: Sequence[Columns], draws: Sequence[str]) -> float:
    """Return MS_r / (S E), the unexplained variance of a mean over seeds.

    Columns of equal draws are added episode by episode, as in `fsbench.core.statistics.paired`;
    without names each is its own.
    """
    groups: dict[str, list[Numbers]] = {}
    columns = list(zip(*side, strict=True))
    names = draws or list(map(str, range(len(columns))))
    for draw, column in zip(names, columns, strict=True):
        values = np.stack(column)
        groups.setdefault(draw, []).append(values - values.mean(axis=0))
    total, seeds = 0.0, len(side)
    for group in groups.values():
        equal_length = len({part.shape for part in group}) == 1
        parts = [np.sum(group, axis=0)] if equal_length else group
        if any(part.shape[1] < 2 for part in parts):
            return math.nan
        errors = sum(part.std(axis=1, ddof=1) / math.sqrt(part.shape[1]) for part in parts)
        total += float((errors**2).sum())
    return total / len(columns) ** 2 / (seeds * (seeds - 1))


def estimate_between(side: Sequence[Columns], residual: float) -> float:
    """Return MS_s / (S E), the variance of a mean over seeds, at least `residual`."""
    means = [average_columns(one) for one in side]
    return max(float(np.var(means, ddof=1)) / len(side), residual)


def estimate_seed_variance(side: Sequence[Columns], draws: Sequence[str]) -> float:
    """Return the variance component of two or more seeds in the mean over columns."""
    between = float(np.var([average_columns(one) for one in side], ddof=1))
    return max(0.0, between - len(side) * estimate_residual(side, draws))


def pool_seed_variances(
    sides: Iterable[tuple[Sequence[Columns], Sequence[str]]],
) -> PooledSpread | None:
    """Return the pooled spread in the mean over columns; None for fewer than three rows with it.

    sides: the seeds of each row, two or more, and the draws of the columns.
    """
    rows = [side for side in sides if all(column.size > 1 for column in side[0][0])]
    if len(rows) < FEWEST_POOLED:
        return None
    freedoms = [len(side) - 1 for side, _ in rows]
    variances = [estimate_seed_variance(*row) for row in rows]
    total = sum(v * f for v, f in zip(variances, freedoms, strict=True))
    return PooledSpread(total / sum(freedoms), sum(freedoms))


def compute_seed_interval(
    value: float, sides: Sequence[Sequence[Columns]], se_episodes: float, draws: Sequence[str]
) -> StudentInterval:
    """Return the interval of a value over seeds and episodes.

    sides: outcomes of two or more seeds each; one side for a mean and for gains paired by seed, two
    independent sides otherwise. se_episodes: standard error over episodes for these seeds.
    """
    if math.isnan(se_episodes):
        return StudentInterval(math.nan, math.nan)
    residuals = [estimate_residual(side, draws) for side in sides]
    between = [estimate_between(s, least) for s, least in zip(sides, residuals, strict=True)]
    variance = sum(between) + max(0.0, se_episodes**2 - sum(residuals))
    if variance == 0.0:
        return StudentInterval(0.0, float(value == 0.0))
    terms = sum(v**2 / (len(side) - 1) for v, side in zip(between, sides, strict=True))
    freedom = variance**2 / terms if terms else math.inf  # Satterthwaite
    return compute_student_interval(value, math.sqrt(variance), freedom)


def compute_pooled_interval(
    paired: Paired, sides: Sequence[int], pooled: PooledSpread
) -> StudentInterval:
    """Return the interval of a gap between sides of these numbers of seeds."""
    between = pooled.variance * sum(1 / n for n in sides)
    variance = paired.se**2 + between
    if math.isnan(variance) or variance == 0.0:
        return StudentInterval(paired.ci95, paired.p)
    freedom = variance**2 * pooled.freedom / between**2 if between else math.inf
    return compute_student_interval(paired.gap, math.sqrt(variance), freedom)


class SeedErrors:
    """Seed part of the errors of rows; outcomes: row -> outcomes of the columns, in order."""

    def __init__(self, outcomes: Mapping[str, Sequence[Outcomes]]) -> None:
        self.outcomes = outcomes
        self.sides = {n: split_seeds(o) for n, o in outcomes.items() if o and o[0].n_seeds > 1}
        self.parts: dict[str, SeedPart] = {}
        self.scores: dict[str, Score] = {}

    def list_draws(self, row: str) -> list[str]:
        return [column.draws for column in self.outcomes[row]]

    @cached_property
    def pooled(self) -> PooledSpread | None:
        if len(self.sides) < FEWEST_POOLED:
            return None
        return pool_seed_variances((s, self.list_draws(row)) for row, s in self.sides.items())

    @cached_property
    def means(self) -> dict[str, Paired]:
        """Row -> mean over columns with its error over episodes."""
        names = list(self.outcomes)
        means: dict[str, Paired] = {}
        for part in (names[low : low + ROWS] for low in range(0, len(names), ROWS)):
            values = [[o.values for o in self.outcomes[name]] for name in part]
            measured = statistics.measure_rows(values, [self.list_draws(name) for name in part])
            means |= zip(part, measured, strict=True)
        return means

    def find_coverage(self, row: str) -> Coverage:
        """Return what the interval of a row covers."""
        if row in self.sides:
            return "seeds and episodes"
        return "pooled seeds and episodes" if self.pooled else "episodes"

    def measure_row(self, row: str) -> Score:
        """Return the mean over seeds and columns, with the interval of the row's own seeds."""
        if row not in self.scores:
            self.scores[row] = self.score_row(row)
        return self.scores[row]

    def score_row(self, row: str) -> Score:
        mean = self.means[row]
        half = mean.ci95
        if row in self.sides:
            side, draws = self.sides[row], self.list_draws(row)
            half = compute_seed_interval(mean.gap, [side], mean.se, draws).ci95
        elif self.pooled:
            half = compute_pooled_interval(mean, (1,), self.pooled).ci95
        return Score(mean.gap, half, mean.n)

    def find_part(self, row: str) -> SeedPart:
        """Return the seed variance of a row's mean; none for one seed without a pooled variance."""
        if row not in self.parts:
            self.parts[row] = self.estimate_part(row)
        return self.parts[row]

    def estimate_part(self, row: str) -> SeedPart:
        pooled = self.pooled
        if row not in self.sides:
            return SeedPart(pooled.variance, 0.0, pooled.freedom) if pooled else SeedPart(0.0)
        side = self.sides[row]
        residual = estimate_residual(side, self.list_draws(row))
        between = estimate_between(side, residual)
        if pooled is None:
            return SeedPart(between, residual, len(side) - 1, len(side))
        least = pooled.variance / len(side) + residual
        return SeedPart(max(between, least), residual, pooled.freedom)

    def widen_gaps(self, row: str, gaps: Gaps) -> Gaps:
        """Return the gaps of a row with the variance of the seeds of both sides."""
        if not (self.sides and gaps):
            return gaps
        a = self.find_part(row)
        b = SeedPart(*np.array([self.find_part(name) for name in gaps]).T)
        has_seeds = (np.asarray(a.variance + b.variance) != 0) & ~np.isnan(gaps.se)
        with np.errstate(invalid="ignore", divide="ignore"):  # where no side has seeds
            se, freedom = add_seed_variance(a, b, gaps.se, gaps.freedom)
        return replace(
            gaps,
            se=np.where(has_seeds, se, gaps.se),
            freedom=np.where(has_seeds, freedom, gaps.freedom),
            has_seeds=has_seeds,
        )

    def widen_halves(self, rows: Sequence[str], errors: Numbers, freedom: float) -> Numbers:
        """Return the half-widths (N, N) of all gaps from their errors (N, N) over episodes."""
        from scipy.special import stdtrit

        parts = np.array([self.find_part(row) for row in rows])
        a, b = SeedPart(*parts.T[:, :, None]), SeedPart(*parts.T[:, None])
        with np.errstate(invalid="ignore"):  # a row against itself
            se, freedoms = add_seed_variance(a, b, errors, freedom)
            widened = se * stdtrit(np.minimum(freedoms, 1e6), 0.975)
        has_seeds = np.asarray(a.variance + b.variance) > 0
        return np.asarray(np.where(has_seeds, widened, statistics.Z95 * errors), np.float64)


def add_seed_variance(
    a: SeedPart, b: SeedPart, error: Numbers, freedom: Numbers | float
) -> tuple[Numbers, Numbers]:
    """Return the error of a gap with the variance of the seeds of both rows, and its freedom.

    error, freedom: over episodes. Arrays are taken element by element.
    """
    freedom = np.maximum(freedom, 1.0)
    from scipy.special import stdtridf, stdtrit

    filled = np.isinf(a.freedom) != np.isinf(b.freedom)
    if filled.any():
        a, b = a.fill(b), b.fill(a)
    between = np.asarray(a.variance + b.variance, np.float64)
    episodes = np.maximum(0.0, error**2 - a.residual - b.residual)
    seeds = np.minimum(
        np.where(np.asarray(a.variance) > 0, a.freedom, math.inf),
        np.where(np.asarray(b.variance) > 0, b.freedom, math.inf),
    )
    variance = between + episodes
    combined = variance**2 / (between**2 / seeds + episodes**2 / freedom)
    if filled.any():
        tails = between * stdtrit(seeds, 0.975) + episodes * stdtrit(freedom, 0.975)
        combined = np.where(filled, stdtridf(0.975, tails / variance), combined)
    return np.sqrt(variance), np.asarray(combined, np.float64)


def split_seeds(columns: Sequence[Outcomes]) -> list[Columns]:
    """Return the outcomes of each seed of a row."""
    return [list(seed) for seed in zip(*(o.by_seed for o in columns), strict=True)]
