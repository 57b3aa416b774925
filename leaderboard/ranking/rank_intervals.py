"""Bootstrap intervals of overall ranks.

Episodes are resampled with replacement, the same ones for all entries (paired) and for all columns
over the same episodes; test images likewise. Entries are ranked by their overall mean in every
resample (percentile interval). It covers the sampling of episodes; seeds of a row are averaged, not
resampled.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fsbench.core.seeding import numpy_generator
from fsbench.core.specs import Frozen
from leaderboard.ranking.outcomes import SummedCounts, align_outcomes
from leaderboard.ranking.tiers import Contenders, Ranking

RESAMPLES = 2000
LEVEL = 0.95
BLOCK = 250_000
"""Numbers per block of resamples."""
DIGITS = 12
"""Decimals to which means are rounded before they are compared."""


class RankInterval(Frozen):
    """The 95 % interval of an entry's overall rank; 1 is the best, ties share the better rank."""

    name: str
    tier: int
    overall: float = Field(description="unweighted mean over the columns")
    rank: int = Field(description="by the overall mean")
    low: int = Field(description="best rank of the 95 % interval")
    high: int = Field(description="worst rank of the 95 % interval")


def bootstrap_ranks(
    ranking: Ranking, contenders: Contenders, resamples: int = RESAMPLES
) -> tuple[RankInterval, ...]:
    """Return the intervals of all ranked entries, best first; resamples are shared by all.

    There are none for fewer than two entries, or if they share fewer than two episodes of a column.
    """
    ranked = [entry for tier in ranking.tiers for entry in tier]
    ranked.sort(key=lambda entry: (-(entry.overall or 0.0), entry.name))  # a tier may skip an entry
    names = [entry.name for entry in ranked]
    if len(names) < 2:
        return ()
    groups: dict[str, list[str]] = {}
    for column in ranking.columns:
        groups.setdefault(contenders[names[0]][column].draws, []).append(column)
    draws = [join_columns(names, contenders, group) for group in groups.values()]
    if min(draw.counts.shape[1] for draw in draws) < 2:
        return ()
    sampled = resample_ranks(draws, len(ranking.columns), resamples)
    sampled.sort(axis=1)
    tail = (1 - LEVEL) / 2
    low, high = (sampled[:, math.ceil(level * resamples) - 1] for level in (tail, 1 - tail))
    [ranks] = rank_means(np.array([[entry.overall for entry in ranked]], np.float64))
    return tuple(
        RankInterval(
            name=entry.name,
            tier=entry.tier or 0,
            overall=entry.overall or 0.0,
            rank=rank,
            low=min(best, rank),  # widened to contain the observed rank
            high=max(worst, rank),
        )
        for entry, rank, best, worst in zip(
            ranked, ranks.tolist(), low.tolist(), high.tolist(), strict=True
        )
    )


def join_columns(
    names: Sequence[str], contenders: Contenders, columns: Sequence[str]
) -> SummedCounts:
    """Return the outcomes at the shared episodes, summed over the columns of one draw."""
    aligned = align_outcomes([contenders[n][column] for column in columns for n in names])
    by_column = [aligned[i : i + len(names)] for i in range(0, len(aligned), len(names))]
    right = [np.stack([o.right for o in column]) for column in by_column]
    return SummedCounts.add(right, np.array([[o.out_of for o in column] for column in by_column]))


def resample_ranks(
    draws: Sequence[SummedCounts], n_columns: int, resamples: int
) -> NDArray[np.int32]:
    """Return the ranks (entries, resamples) of the overall mean.

    The draws are those of scipy.stats.bootstrap, whose import would take half a second.
    """
    entries, sizes = len(draws[0].counts), [draw.counts.shape[1] for draw in draws]
    rng = numpy_generator("rank intervals", *sizes)
    batch = max(1, BLOCK // max(*sizes, entries))
    ranks = np.empty((entries, resamples), np.int32)
    for start in range(0, resamples, batch):
        blocks = min(batch, resamples - start)
        means = np.zeros((blocks, entries))
        for n, draw in zip(sizes, draws, strict=True):
            rows = rng.integers(0, n, (blocks, n)) + n * np.arange(blocks)[:, None]
            drawn = np.bincount(rows.ravel(), minlength=blocks * n).reshape(blocks, n)
            means += drawn.astype(draw.counts.dtype) @ draw.counts.T / (n_columns * n * draw.out_of)
        ranks[:, start : start + blocks] = rank_means(means).T
    return ranks


def rank_means(means: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the ranks in each row (N, entries), 1 for the highest; ties share the better rank."""
    rows = -means.round(DIGITS)
    ranks = [np.searchsorted(np.sort(row), row) + 1 for row in rows]
    return np.array(ranks, np.int32)
