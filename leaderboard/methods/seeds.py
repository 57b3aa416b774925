"""Pretraining seeds and episodes as two crossed random factors.

Outcome y[s, e] = mean + a[s] + b[e] + r[s, e] with independent variances: a of the pretraining
seeds, b of the episodes that all seeds share, r of what neither explains. Estimated by the mean
squares of the two-way table without replication, negative estimates set to zero (ANOVA estimators
of balanced data: Searle, Casella, McCulloch, Variance Components, 1992, chapter 4; Montgomery,
Design and Analysis of Experiments, chapter on random factors).

    seeds = (MS_s - MS_r) / E      episodes = (MS_e - MS_r) / S      residual = MS_r

The mean of S seeds over E episodes then has the variance (MS_s + MS_e - MS_r) / (S E); its interval
is a t interval with Satterthwaite's degrees of freedom, which is wide for few seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from leaderboard.methods.record import VarianceComponents

Columns = Sequence[NDArray[np.float64]]
"""Outcomes of one seed: one array (n,) per column, over the same episodes for all seeds."""


class SeedInterval(NamedTuple):
    """Half-width of a 95 % interval, and two-sided p of the value zero; nan if unknown."""

    ci95: float
    p: float


def estimate_components(values: NDArray[np.float64]) -> VarianceComponents:
    """Estimate the variance components of outcomes (S seeds, E episodes)."""
    seeds, n = values.shape
    if n < 2:
        return VarianceComponents()
    if seeds < 2:
        return VarianceComponents(episodes=float(values.var(ddof=1)))
    by_seed, by_episode = values.mean(axis=1), values.mean(axis=0)
    left = values - by_seed[:, None] - by_episode + values.mean()
    residual = float((left**2).sum()) / ((seeds - 1) * (n - 1))
    return VarianceComponents(
        seeds=max(0.0, float(by_seed.var(ddof=1)) - residual / n),
        episodes=max(0.0, float(by_episode.var(ddof=1)) - residual / seeds),
        residual=residual,
    )


def average_seeds(side: Sequence[Columns]) -> list[NDArray[np.float64]]:
    """Return the mean over seeds of every outcome, column by column."""
    return [np.mean(column, axis=0) for column in zip(*side, strict=True)]


def average_columns(columns: Columns) -> float:
    return float(np.mean([column.mean() for column in columns]))


def residual_variance(side: Sequence[Columns], draws: Sequence[str]) -> float:
    """Return MS_r / (S E), the unexplained variance of a mean over seeds.

    Columns of equal draws are added episode by episode, as in `fsbench.core.statistics.paired`.
    """
    center, seeds = average_seeds(side), len(side)
    errors = [statistics.paired(one, center, draws).se for one in side]
    return sum(error**2 for error in errors) / (seeds * (seeds - 1))


def seed_variance(side: Sequence[Columns], draws: Sequence[str]) -> float:
    """Return the variance component of two or more seeds in the mean over columns."""
    between = float(np.var([average_columns(one) for one in side], ddof=1))
    return max(0.0, between - len(side) * residual_variance(side, draws))


def interval_over_seeds(
    value: float, sides: Sequence[Sequence[Columns]], se_episodes: float, draws: Sequence[str]
) -> SeedInterval:
    """Return the interval of a value over seeds and episodes.

    sides: outcomes of two or more seeds each; one side for a mean and for gains paired by seed, two
    independent sides otherwise. se_episodes: standard error over episodes for these seeds.
    """
    if math.isnan(se_episodes):
        return SeedInterval(math.nan, math.nan)
    residuals = [residual_variance(side, draws) for side in sides]
    between = [
        max(float(np.var([average_columns(one) for one in side], ddof=1)) / len(side), least)
        for side, least in zip(sides, residuals, strict=True)
    ]
    variance = sum(between) + max(0.0, se_episodes**2 - sum(residuals))
    if variance == 0.0:
        return SeedInterval(0.0, float(value == 0.0))
    terms = sum(v**2 / (len(side) - 1) for v, side in zip(between, sides, strict=True))
    freedom = variance**2 / terms if terms else math.inf  # Satterthwaite
    return student_interval(value, math.sqrt(variance), freedom)


def student_interval(value: float, se: float, freedom: float) -> SeedInterval:
    """Return the interval and p of Student's t distribution."""
    from scipy.special import stdtr, stdtrit

    freedom = min(freedom, 1e6)
    return SeedInterval(
        se * float(stdtrit(freedom, 0.975)), 2 * float(stdtr(freedom, -abs(value) / se))
    )
