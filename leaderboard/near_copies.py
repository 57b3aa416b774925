"""Entries whose outcomes hardly arise without copying: near copies, equal weights with others.

They are shown as suspicious, not refused: a maintainer who has examined a pair adds it to `cleared`
in board.json, e.g. [["a", "b"]]. Equal outcomes of other weights are refused by
submission/inspection.py.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.results.entry import Loaded
from leaderboard.ranking.outcomes import EXACT, Outcomes, extract_outcomes
from leaderboard.record import BoardFile

NEAR_COPY = 0.1
"""Mean squared difference of episodes, in parts of that of two independent models.

5 % of the queries flipped give 0.1. The closest pair of the pilot study, two runs that share their
first generation, has 0.26.
"""
MIN_ERRORS = 50
"""Expected differences below which small numbers are no evidence."""
SAME_WEIGHTS = {"affine": 0.05}
OTHER_HEADS = 0.01
"""Share of queries in which two evaluations of one network may differ, affine tuning being chaotic;
on another machine 0.002 and 0.02 are usual."""


ROWS = 256
"""Rows compared with all others at a time: memory grows with the entries, not with the pairs."""
REASONS = "suspicious: near copy of", "suspicious: other outcomes than the same weights in"
"""Of a pair with other weights, and of one with equal weights."""
Numbers = NDArray[Any]
Suspicions = dict[str, dict[str, list[str]]]
"""Entry -> reason -> the other entries."""


class OutcomeRow(NamedTuple):
    """Outcomes of an entry on a column: rows of equal `column` are compared."""

    entry: str
    head: str
    column: tuple[str, str, int, int | bytes]
    weights: str
    outcomes: Outcomes

    @classmethod
    def of(cls, entry: str, loaded: Loaded) -> "OutcomeRow":
        result, outcomes = loaded.result, extract_outcomes(loaded).unweighted
        episodes = (outcomes.draws, outcomes.out_of, outcomes.numbering)
        column = (result.spec_digest, *episodes)
        return cls(entry, result.column.adaptation, column, result.backbone.identity, outcomes)


def find_suspicions(file: BoardFile, rows: Iterable[OutcomeRow]) -> Suspicions:
    """Return what is suspicious about each entry; pairs in `cleared` are left out."""
    names, pairs = compare_entries(rows)
    cleared = {frozenset(pair) for pair in file.cleared}
    if cleared:
        entries = [frozenset((names[a], names[b])) for _, a, b in pairs.tolist()]
        pairs = pairs[np.array([pair not in cleared for pair in entries], np.bool_)]
    return group_by_entry(names, pairs)


def group_by_entry(names: Sequence[str], pairs: NDArray[np.int64]) -> Suspicions:
    """Return the others of each entry, by reason. pairs: of compare_entries."""
    if not pairs.size:
        return {}
    both = np.stack([pairs, pairs[:, [0, 2, 1]]], axis=1)
    is_new = np.ones(both.shape[:2], np.bool_)
    is_new[:, 1] = pairs[:, 1] != pairs[:, 2]  # an entry may have both results
    both = both[is_new]
    keys = both[:, 1] * len(REASONS) + both[:, 0]
    order = np.argsort(keys, kind="stable")
    suspicions: Suspicions = {}
    for part in np.split(both[order], np.flatnonzero(np.diff(keys[order])) + 1):
        reason, entry, _ = part[0]
        others = [names[other] for other in part[:, 2].tolist()]
        suspicions.setdefault(names[entry], {})[REASONS[reason]] = others
    return suspicions


def describe_suspicions(suspicions: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return one text per reason, with the first entry and the number of others."""
    return tuple(
        f"{reason} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for reason, names in suspicions.items()
    )


def compare_entries(rows: Iterable[OutcomeRow]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the entries, and suspicious pairs (P, 3): place in REASONS, two places of entries.

    A pair is listed once for a reason, at the first column in which it holds.
    """
    columns: dict[tuple[str, str, int, int | bytes], list[OutcomeRow]] = defaultdict(list)
    numbers: dict[str, int] = {}
    for row in rows:
        columns[row.column].append(row)
        numbers.setdefault(row.entry, len(numbers))
    shape = len(REASONS), len(numbers), len(numbers)
    keys = [np.empty(0, np.int64)]
    for group in columns.values():
        pairs, same = find_suspicious_pairs(group)
        entries = np.sort(np.array([numbers[row.entry] for row in group])[pairs], axis=1)
        keys.append(np.ravel_multi_index((same.astype(np.int64), *entries.T), shape))
    every = np.concatenate(keys)
    distinct = every[np.sort(np.unique(every, return_index=True)[1])]
    return list(numbers), np.stack(np.unravel_index(distinct, shape), axis=1)


def find_suspicious_pairs(group: list[OutcomeRow]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the suspicious pairs (P, 2) of a column, and whether their weights are equal (P,)."""
    out_of = group[0].outcomes.out_of
    right = np.array([row.outcomes.right for row in group])
    queries = right.shape[1] * out_of
    # sums of products of counts are exact in either type
    right = right.astype(np.float32 if 2 * queries * out_of < EXACT else np.float64)
    places = {row.weights: i for i, row in enumerate(group)}
    weights = np.array([places[row.weights] for row in group])
    sums = right.sum(axis=1, dtype=np.float64)
    near, distances = pair_near_rows(right, sums, NEAR_COPY * queries / 2)
    same = pair_equal(weights)
    accuracies = sums[near].sum(axis=1) / (2 * queries)
    expected = 2 * accuracies * (1 - accuracies) * queries
    is_near = (distances <= NEAR_COPY * expected) & (expected >= MIN_ERRORS)
    is_near &= weights[near[:, 0]] != weights[near[:, 1]]
    differs = (
        count_differences(right, same) > SAME_WEIGHTS.get(group[0].head, OTHER_HEADS) * queries
    )
    pairs = np.concatenate([near[is_near], same[differs]])
    pairs = np.sort(pairs, axis=1)
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    return pairs, weights[pairs[:, 0]] == weights[pairs[:, 1]]


def pair_near_rows(
    right: Numbers, sums: Numbers, limit: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the pairs (P, 2) of rows (N, E) at a squared distance (P,) of at most `limit`.

    Only rows with sums near each other are compared: the squared distance is at least the squared
    difference of the sums divided by E.
    """
    order = np.argsort(sums, kind="stable")
    squares = np.einsum("ke,ke->k", right, right)
    reach = sums[order] + math.sqrt(limit * right.shape[1]) + 1
    ends = np.searchsorted(sums[order], reach, side="right")
    pairs, distances = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for low in range(0, len(order), ROWS):
        rows = order[low : low + ROWS]
        others = order[low : ends[low + len(rows) - 1]]
        differences = squares[rows, None] + squares[others] - 2 * (right[rows] @ right[others].T)
        first, second = np.nonzero(differences <= limit)
        first, second = first[second > first], second[second > first]
        pairs.append(np.stack([rows[first], others[second]], axis=1))
        distances.append(differences[first, second].astype(np.float64))
    return np.concatenate(pairs), np.concatenate(distances)


def pair_equal(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs (P, 2) of places with equal values."""
    order = np.argsort(values, kind="stable")
    pairs = [np.empty((0, 2), np.int64)]
    for apart in range(1, np.bincount(values).max()):
        both = np.stack([order[:-apart], order[apart:]], axis=1)
        pairs.append(both[values[both[:, 0]] == values[both[:, 1]]])
    return np.concatenate(pairs)


def count_differences(right: Numbers, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the squared distances (P,) of pairs of rows."""
    parts = [pairs[low : low + ROWS] for low in range(0, len(pairs), ROWS)]
    apart = (right[part[:, 0]] - right[part[:, 1]] for part in parts)
    distances = [np.einsum("ke,ke->k", x, x).astype(np.float64) for x in apart]
    return np.concatenate([np.empty(0), *distances])
