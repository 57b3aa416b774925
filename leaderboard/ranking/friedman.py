"""Average ranks over columns, Friedman's test of them, and Nemenyi's critical difference.

J. Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006), 3.2.2: two
entries differ if their average ranks differ by at least q sqrt(k (k + 1) / (6 N)) for k entries
and N columns, where q is a quantile of the studentized range divided by sqrt(2). The test assumes
independent columns; those of one data set are not, so it is optimistic there.
"""

from itertools import combinations
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fsbench.core.errors import UsageError
from fsbench.core.specs import Frozen
from leaderboard.ranking.rank_intervals import DIGITS
from leaderboard.ranking.simultaneous import tabulate_ranges
from leaderboard.ranking.tiers import Ranking

FEWEST = (3, 2)
"""Minimum numbers of entries and columns."""
SURELY = 1.05
"""Factor on alpha from which on equal entries that differ as widely are surely undivided."""
MOST_PAIRED = 50
"""Maximum number of entries for a table of all pairs, which grows with their square."""


class RankDifference(Frozen):
    """Nemenyi's test of the average ranks of two entries."""

    a: str
    b: str
    p: float


class FriedmanTest(Frozen):
    """Friedman's test of equal ranks over the columns, and the critical difference (Demsar 2006).

    cliques: sets of entries within one critical difference, in the order of their average ranks:
    the bars of the diagram. An entry may be in several sets, or in none.
    """

    chi2: float
    p: float
    columns: int
    average_ranks: dict[str, float] = Field(description="best first; 1 is first in every column")
    critical_difference: float
    alpha: float
    cliques: tuple[tuple[str, ...], ...]
    nemenyi: tuple[RankDifference, ...] | None = Field(
        None, description="every pair; null on a board of more than 50 entries"
    )


def run_friedman(ranking: Ranking) -> FriedmanTest:
    """Test the ranked entries, which have every column. Raise UsageError if there are too few."""
    means, average = average_over_columns(ranking)
    columns, entries = means.shape
    difference = compute_critical_difference(entries, columns, ranking.alpha)
    chi2, p = compute_chi2(means)
    return FriedmanTest(
        chi2=chi2,
        p=p,
        columns=columns,
        average_ranks=average,
        critical_difference=difference,
        alpha=ranking.alpha,
        cliques=find_cliques(average, difference),
        nemenyi=run_nemenyi(average, columns),
    )


def is_undivided(ranking: Ranking) -> bool:
    """Return whether the critical difference surely separates none of the ranked entries.

    It needs no scipy.stats, whose import takes longer than drawing a diagram. Raises UsageError if
    there are too few entries.
    """
    means, average = average_over_columns(ranking)
    columns, entries = means.shape
    error = sqrt(entries * (entries + 1) / (6 * columns))
    widest = (max(average.values()) - min(average.values())) / error * sqrt(2)
    return bool(np.interp(widest, *tabulate_ranges(entries)) > SURELY * ranking.alpha)


def average_over_columns(ranking: Ranking) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Return the means (columns, entries) and the mean rank of each ranked entry, best first."""
    scores = {s.name: s.scores for tier in ranking.tiers for s in tier}
    names, columns = sorted(scores), ranking.columns
    if len(names) < FEWEST[0] or len(columns) < FEWEST[1]:
        raise UsageError(
            f"Friedman's test: ranked entries {len(names)}, columns {len(columns)}",
            fix=f"it needs {FEWEST[0]} entries and {FEWEST[1]} columns",
        )
    means = np.array([[scores[name][column].mean for name in names] for column in columns])
    means = means.round(DIGITS)
    ranks = np.stack([rank_column(column) for column in means]).mean(axis=0).tolist()
    average = dict(zip(names, ranks, strict=True))
    return means, dict(sorted(average.items(), key=lambda item: item[1]))


def rank_column(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ranks (entries,), 1 for the highest; ties share a mean rank."""
    ordered = np.sort(-means)
    first, end = (np.searchsorted(ordered, -means, side) for side in ("left", "right"))
    return (first + end + 1) / 2


def compute_chi2(means: NDArray[np.float64]) -> tuple[float, float]:
    """Return chi-squared and p; 0 and 1 if all entries tie in every column."""
    from scipy.stats import friedmanchisquare

    if (means == means[:, :1]).all():
        return 0.0, 1.0
    test = friedmanchisquare(*means.T)
    return float(test.statistic), float(test.pvalue)


def compute_critical_difference(n_entries: int, n_columns: int, alpha: float = 0.05) -> float:
    """Return the difference of average ranks that is significant by Nemenyi's test."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, n_entries, inf)) / sqrt(2)
    return q * sqrt(n_entries * (n_entries + 1) / (6 * n_columns))


def find_cliques(average: dict[str, float], difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the largest sets of entries, in order of rank, within one critical difference."""
    names, ranks = list(average), np.array(list(average.values()))
    ends = np.searchsorted(ranks, ranks + difference, side="left").tolist()
    ends_before = [0, *ends]
    runs = [(i, end) for i, end in enumerate(ends) if end - i > 1 and end > ends_before[i]]
    return tuple(tuple(names[start:end]) for start, end in runs)


def run_nemenyi(average: dict[str, float], n_columns: int) -> tuple[RankDifference, ...] | None:
    """Return p of every pair by Nemenyi's test; None for more than MOST_PAIRED entries.

    average: the mean rank of each entry by name. The difference of two mean ranks over its standard
    error, sqrt(k (k + 1) / (6 N)), times sqrt(2) follows the studentized range.
    """
    from scipy.stats import studentized_range

    if len(average) > MOST_PAIRED:
        return None
    k = len(average)
    pairs = list(combinations(sorted(average), 2))
    gaps = np.array([abs(average[a] - average[b]) for a, b in pairs])
    p = studentized_range.sf(gaps / sqrt(k * (k + 1) / (6 * n_columns)) * sqrt(2), k, inf)
    return tuple(RankDifference(a=a, b=b, p=float(q)) for (a, b), q in zip(pairs, p, strict=True))
