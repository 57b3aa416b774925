"""Paired standard errors of all pairs of entries in one byte each, column by column.

The gap of two entries is the difference of their means; what a page cannot know from means and
intervals is how far pairing narrows it. Stored is the ratio of the paired standard error to the
one of independent samples, on a logarithmic grid of 252 steps from 0.05 to the square root of 2:
a half-width read back is within 0.7 % of that of fsbench.core.statistics.paired, and never
understated below
the grid. 200 entries of 16 columns take about 300 kB; the outcomes themselves would take 1.3 MB.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.rank import Contenders

Matrix = NDArray[np.float64]

SAME, UNKNOWN = 0, 255
"""Codes of two entries whose gap is one constant, and of two that hold other episodes."""
LOW, STEP = 0.05, math.log(math.sqrt(2) / 0.05) / 252
"""Code c in 1..253 is the ratio LOW * exp(STEP * (c - 1))."""
MAX_CODES = 400_000
"""Of one track: beyond it only the best entries are paired on the page."""
EXACT = 1e-12
"""Variances below it are rounding of zero; the least real one is (1 / 75)^2 / 600."""


def paired_entries(n: int, n_columns: int) -> int:
    """How many of n entries, best first, are paired so that all codes fit the page."""
    most = (1 + math.sqrt(1 + 8 * MAX_CODES / (n_columns + 1))) / 2
    return min(n, int(most))


def codes(contenders: Contenders, names: Sequence[str], columns: Sequence[str]) -> bytes:
    """Overall first, then column by column: pairs (0, 1), (0, 2), (1, 2), (0, 3), ... of names."""
    blocks = [overall(contenders, names, columns)]
    blocks += [of_column([contenders[name].get(column) for name in names]) for column in columns]
    rows, others = np.tril_indices(len(names), -1)
    return b"".join(block[rows, others].tobytes() for block in blocks)


def of_column(held: Sequence[Outcomes | None]) -> NDArray[np.uint8]:
    """Codes (N, N) of one column."""
    found = np.full((len(held), len(held)), UNKNOWN, np.uint8)
    for members in alike(held):
        x = np.stack([each.values for i in members if (each := held[i]) is not None])
        found[np.ix_(members, members)] = encode(*errors(x))
    return found


def overall(
    contenders: Contenders, names: Sequence[str], columns: Sequence[str]
) -> NDArray[np.uint8]:
    """Codes (N, N) of the unweighted mean over the columns, of entries that hold all of them."""
    found = np.full((len(names), len(names)), UNKNOWN, np.uint8)
    held = [whole(contenders[name], columns) for name in names]
    for members in alike(held):
        total = np.zeros((len(members), len(members)))
        apart = np.zeros_like(total)
        for group in drawn_together(contenders[names[members[0]]], columns):
            sums = [sum(contenders[names[i]][c].values for c in group) for i in members]
            paired, independent = errors(np.stack([np.asarray(s) for s in sums]))
            total, apart = total + paired**2, apart + independent**2
        found[np.ix_(members, members)] = encode(np.sqrt(total), np.sqrt(apart))
    return found


def overall_error(held: Mapping[str, Outcomes], columns: Sequence[str]) -> float:
    """Standard error of one entry's mean over all columns; nan where an episode is alone."""
    total = 0.0
    for group in drawn_together(held, columns):
        x = np.asarray(sum(held[column].values for column in group))
        total += x.var(ddof=1) / x.size if x.size > 1 else math.nan
    return math.sqrt(total) / len(columns)


def whole(held: Mapping[str, Outcomes], columns: Sequence[str]) -> Outcomes | None:
    """All episode numbers of an entry as one; None where it lacks a column."""
    if not columns or any(column not in held for column in columns):
        return None
    index = np.concatenate([held[column].index for column in columns])
    return Outcomes(index, np.zeros(index.size), " ".join(held[c].draws for c in columns))


def alike(held: Sequence[Outcomes | None]) -> list[list[int]]:
    """Places of the entries that hold the same, more than one, episodes of the same draws."""
    groups: dict[tuple[str, bytes], list[int]] = {}
    for i, each in enumerate(held):
        if each is not None and each.values.size > 1:
            groups.setdefault((each.draws, each.index.tobytes()), []).append(i)
    return list(groups.values())


def drawn_together(held: Mapping[str, Outcomes], columns: Sequence[str]) -> list[list[str]]:
    """Columns over the same episodes, whose gaps add up episode by episode (stats.paired)."""
    groups: dict[tuple[str, int], list[str]] = {}
    for column in columns:
        groups.setdefault((held[column].draws, held[column].values.size), []).append(column)
    return list(groups.values())


def errors(x: Matrix) -> tuple[Matrix, Matrix]:
    """Standard errors (N, N) of the mean differences of the rows of x (N, E): paired, and as if
    the rows were independent."""
    centred = x - x.mean(axis=1, keepdims=True)
    products = centred @ centred.T / (x.shape[1] - 1)
    apart = np.add.outer(products.diagonal(), products.diagonal())
    together = apart - 2 * products
    together[together < EXACT] = 0.0
    return np.sqrt(together / x.shape[1]), np.sqrt(apart / x.shape[1])


def encode(paired: Matrix, independent: Matrix) -> NDArray[np.uint8]:
    """Codes of standard errors; a ratio below the grid is stored as its lowest step."""
    ratio = np.divide(paired, independent, out=np.zeros_like(paired), where=independent > 0)
    steps = np.log(np.maximum(ratio, LOW) / LOW) / STEP
    return np.where(paired == 0, SAME, np.clip(np.rint(steps), 0, 252) + 1).astype(np.uint8)


def decode(code: int) -> float:
    """The ratio that a code stands for; nan for UNKNOWN."""
    if code == UNKNOWN:
        return math.nan
    return 0.0 if code == SAME else LOW * math.exp(STEP * (code - 1))
