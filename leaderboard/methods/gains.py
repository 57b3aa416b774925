"""Gains of a row over its control, per column and overall, on the outcomes that both share.

With two or more seeds on both sides the interval covers seeds and episodes. With fewer it covers
episodes (`fsbench.core.statistics.paired`) and, if three rows or more have several seeds, their
pooled spread: the runs that exist say how far one seed may lie from another. Runs of one seed share
initial weights and batches, so gains over `normal` are paired by seed; gains over random
initializations are not.

Seeds and episodes are two crossed random factors:

    y[s, e] = mean + a[s] + b[e] + r[s, e]

with independent variances: a of the pretraining seeds, b of the episodes that all seeds share, r of
the rest. They are estimated by the mean squares of the two-way table without replication, negative
estimates set to zero (ANOVA estimators of balanced data: Searle, Casella, McCulloch, Variance
Components, 1992, chapter 4; Montgomery, Design and Analysis of Experiments, random factors):

    seeds = (MS_s - MS_r) / E      episodes = (MS_e - MS_r) / S      residual = MS_r

The mean of S seeds over E episodes has the variance (MS_s + MS_e - MS_r) / (S E); its interval is a
t interval with Satterthwaite's degrees of freedom, which is wide for few seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from leaderboard.methods.controls import MatchedControl
from leaderboard.methods.record import ControlKind, Gain, VarianceComponents
from leaderboard.methods.runs import MethodRun, align_outcomes

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


def estimate_residual(side: Sequence[Columns], draws: Sequence[str]) -> float:
    """Return MS_r / (S E), the unexplained variance of a mean over seeds.

    Columns of equal draws are added episode by episode, as in `fsbench.core.statistics.paired`.
    """
    center, seeds = average_seeds(side), len(side)
    errors = [statistics.paired(one, center, draws).se for one in side]
    return sum(error**2 for error in errors) / (seeds * (seeds - 1))


def estimate_seed_variance(side: Sequence[Columns], draws: Sequence[str]) -> float:
    """Return the variance component of two or more seeds in the mean over columns."""
    between = float(np.var([average_columns(one) for one in side], ddof=1))
    return max(0.0, between - len(side) * estimate_residual(side, draws))


def compute_seed_interval(
    value: float, sides: Sequence[Sequence[Columns]], se_episodes: float, draws: Sequence[str]
) -> SeedInterval:
    """Return the interval of a value over seeds and episodes.

    sides: outcomes of two or more seeds each; one side for a mean and for gains paired by seed, two
    independent sides otherwise. se_episodes: standard error over episodes for these seeds.
    """
    if math.isnan(se_episodes):
        return SeedInterval(math.nan, math.nan)
    residuals = [estimate_residual(side, draws) for side in sides]
    between = [
        max(float(np.var([average_columns(one) for one in side], ddof=1)) / len(side), least)
        for side, least in zip(sides, residuals, strict=True)
    ]
    variance = sum(between) + max(0.0, se_episodes**2 - sum(residuals))
    if variance == 0.0:
        return SeedInterval(0.0, float(value == 0.0))
    terms = sum(v**2 / (len(side) - 1) for v, side in zip(between, sides, strict=True))
    freedom = variance**2 / terms if terms else math.inf  # Satterthwaite
    return compute_student_interval(value, math.sqrt(variance), freedom)


def compute_student_interval(value: float, se: float, freedom: float) -> SeedInterval:
    """Return the interval and p of Student's t distribution."""
    from scipy.special import stdtr, stdtrit

    freedom = min(freedom, 1e6)
    p = 2 * float(stdtr(freedom, -abs(value) / se))
    return SeedInterval(se * float(stdtrit(freedom, 0.975)), p)


GainKey = tuple[str, str, ControlKind]
"""Row, column ('' for overall) and kind of control."""


class PairedRuns(NamedTuple):
    """Shared outcomes of a row and its control: seeds x columns x (n,); draws: of each column."""

    ours: list[Columns]
    theirs: list[Columns]
    draws: list[str]

    @property
    def n(self) -> int:
        return sum(column.size for column in self.ours[0])


def pair_runs(
    ours: Sequence[MethodRun], theirs: Sequence[MethodRun], columns: Sequence[str]
) -> PairedRuns:
    """Return the outcomes of the episodes or test images that all these runs have."""
    outcomes = [align_outcomes([*ours, *theirs], column) for column in columns]
    by_run: list[Columns] = [list(run) for run in zip(*outcomes, strict=True)]
    draws = [ours[0].outcomes[column].draws for column in columns]
    return PairedRuns(by_run[: len(ours)], by_run[len(ours) :], draws)


class PooledSpread(NamedTuple):
    """Variance between the seeds of one row, pooled over rows, and its degrees of freedom."""

    variance: float
    freedom: int


FEWEST_POOLED = 3
"""Rows with several seeds that a pooled spread needs."""


def pool_seed_variance(
    sides: Sequence[Sequence[MethodRun]], columns: Sequence[str]
) -> PooledSpread | None:
    """Return the pooled spread in the mean over columns; None for fewer than three rows with it.

    sides: the runs of each row.
    """
    pairs = [
        pair_runs(runs, (), columns)
        for runs in sides
        if len(runs) > 1 and all(column in run.outcomes for run in runs for column in columns)
    ]
    rows = [pair for pair in pairs if all(column.size > 1 for column in pair.ours[0])]
    if len(rows) < FEWEST_POOLED or not columns:
        return None
    freedoms = [len(pair.ours) - 1 for pair in rows]
    variances = [estimate_seed_variance(pair.ours, pair.draws) for pair in rows]
    total = sum(v * f for v, f in zip(variances, freedoms, strict=True))
    return PooledSpread(total / sum(freedoms), sum(freedoms))


def compute_pooled_interval(
    paired: statistics.Paired, sides: Sequence[int], pooled: PooledSpread
) -> SeedInterval:
    """Return the interval of a gap between sides of these numbers of seeds."""
    between = pooled.variance * sum(1 / n for n in sides)
    variance = paired.se**2 + between
    if math.isnan(variance) or variance == 0.0:
        return SeedInterval(paired.ci95, paired.p)
    freedom = variance**2 * pooled.freedom / between**2 if between else math.inf
    return compute_student_interval(paired.gap, math.sqrt(variance), freedom)


def compute_gain(
    pair: PairedRuns, seeds: tuple[int, ...], by_seed: bool, pooled: PooledSpread | None = None
) -> Gain | None:
    """Return the gain; None without a shared outcome in every column.

    by_seed: run i of both sides has the same seed; pooled: for sides of one seed.
    """
    ours, theirs, draws = pair
    if not all(column.size for column in ours[0]):
        return None
    paired = statistics.paired(average_seeds(ours), average_seeds(theirs), draws)
    seeds_drawn: list[list[Columns]] = [[*ours], [*theirs]]
    if by_seed:
        pairs = zip(ours, theirs, strict=True)
        seeds_drawn = [[[x - y for x, y in zip(a, b, strict=True)] for a, b in pairs]]
    ci95, p, covers = paired.ci95, paired.p, "episodes"
    if min(map(len, seeds_drawn)) > 1:
        ci95, p = compute_seed_interval(paired.gap, seeds_drawn, paired.se, draws)
        covers = "seeds and episodes"
    elif pooled:
        ci95, p = compute_pooled_interval(paired, (len(ours), len(theirs)), pooled)
        covers = "pooled seeds and episodes"
    by_seed_gaps = tuple(map(average_columns, seeds_drawn[0])) if by_seed else ()
    more = {"n": pair.n, "seeds": seeds, "covers": covers, "by_seed": by_seed_gaps}
    return make_gain(paired.gap, ci95, p, **more)


def make_gain(gap: float, ci95: float, p: float, **more: object) -> Gain:
    """Return the record of a gain: no interval and p = 1 if they are nan."""
    values = {"gap": gap, "ci95": ci95 if ci95 == ci95 else None, "p": p if p == p else 1.0}
    return Gain.model_validate({**values, **more})


def compute_gain_over(
    ours: Sequence[MethodRun],
    kind: ControlKind,
    control: MatchedControl,
    columns: Sequence[str],
    pooled: PooledSpread | None = None,
) -> Gain | None:
    """Return the gain over the control in these columns; None if one side lacks a column."""
    if control.group is None or not columns:
        return None
    by_seed = kind != "random_init"
    ours = [run for run in ours if run.seed in control.seeds]
    theirs = control.group.of(control.seeds) if by_seed else control.group.runs
    if not all(column in run.outcomes for column in columns for run in (*ours, *theirs)):
        return None
    return compute_gain(pair_runs(ours, theirs, columns), control.seeds, by_seed, pooled)


def adjust_gains(gains: Mapping[GainKey, Gain]) -> dict[GainKey, Gain]:
    """Adjust p-values by Holm over the rows, separately by column and kind of control."""
    families: dict[tuple[str, ControlKind], list[GainKey]] = {}
    for row, column, kind in gains:
        families.setdefault((column, kind), []).append((row, column, kind))
    adjusted: dict[GainKey, Gain] = {}
    for keys in families.values():
        for key, p in zip(keys, statistics.holm([gains[key].p for key in keys]), strict=True):
            adjusted[key] = gains[key].model_copy(update={"p_holm": p})
    return adjusted
