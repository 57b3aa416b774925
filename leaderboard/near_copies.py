"""Networks whose outcomes hardly arise without copying, and equal weights, flagged on both sides.

They are shown as suspicious, not refused: a maintainer who has examined a pair of entries adds it
to `cleared` in board.json, e.g. [["a", "b"]].

Two networks are near copies if their answers, right or wrong query by query, correlate as those of
a copy would of which 5 % of the queries were flipped, or whose accuracy was raised by 3 points: for
an accuracy p that becomes q

    flipped    .9 sqrt(p (1 - p) / (q (1 - q)))        q = p + .05 (1 - 2 p)
    improved   sqrt(p (1 - q) / ((1 - p) q))           q = p + .03

the smaller of both times SLACK, up to an accuracy of MOST, above which all good networks agree. In
the studies of this repository 341 of 555,366 pairs of results reach it, between networks that share
their first round of training (and one that collapses); of 8,796 pairs of seeds of one recipe only
five of the latter. Counts of episodes find the pairs to compare: those of a copy correlate alike.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core.records import EpisodeRecords
from fsbench.results.entry import Loaded
from leaderboard.ranking.outcomes import Outcomes, extract_outcomes
from leaderboard.record import BoardFile
from leaderboard.store import BoardEntry

FLIPPED, IMPROVED = 0.05, 0.03
SLACK = 0.97
LEAST, MOST = 0.05, 0.955
"""Accuracies between which the bound follows the formula."""
MARGIN = 0.05
"""By so much counts of 100 episodes or more may correlate less than answers, by chance."""
MIN_ERRORS = 50
"""Expected differences of independent networks below which small numbers are no evidence."""
COLUMNS = 3
"""Columns of a pair that are compared query by query, those whose counts correlate most."""
SAME_WEIGHTS = {"affine": 0.05}
OTHER_HEADS = 0.01
"""Share of queries in which two evaluations of one network may differ, affine tuning being chaotic;
on another machine 0.002 and 0.02 are usual."""
ROWS = 256
"""Rows compared with all others at a time: memory grows with the entries, not with the pairs."""
NEAR, DIFFERS, SAME = (
    "suspicious: near copy of",
    "suspicious: other outcomes than the same weights in",
    "the same weights as",
)
Answers = NDArray[np.uint8]
"""Answers of a network on a column, right or wrong, as packed bits."""
Suspicions = dict[str, tuple[str, ...]]
"""Network -> a text for each reason."""


class NetworkResult(NamedTuple):
    """A result of a network of an entry."""

    entry: str
    network: str
    loaded: Loaded

    @property
    def weights(self) -> str:
        return self.loaded.result.backbone.identity

    @property
    def outcomes(self) -> Outcomes:
        return extract_outcomes(self.loaded).unweighted

    @property
    def n_queries(self) -> int:
        return self.outcomes.right.size * self.outcomes.out_of

    @property
    def answers(self) -> Answers:
        records = self.loaded.records
        if isinstance(records, EpisodeRecords):
            return np.packbits(records.correct)
        return np.packbits(self.outcomes.right > 0)


class Pair(NamedTuple):
    """Two results of a column, and how their counts correlate."""

    one: NetworkResult
    other: NetworkResult
    correlation: float


def list_results(entries: Iterable[BoardEntry]) -> list[NetworkResult]:
    """Return every result of these entries with the name of its network."""
    return [
        NetworkResult(entry.name, network.name, loaded)
        for entry in entries
        for network in entry.networks
        for loaded in network.cells
    ]


def find_suspicions(file: BoardFile, results: Iterable[NetworkResult]) -> Suspicions:
    """Return what is suspicious about each network; pairs in `cleared` are left out.

    A text names a reason, the first network of it and the number of the others.
    """
    cleared = {frozenset(names) for names in file.cleared}
    others: dict[str, dict[str, dict[str, None]]] = {}
    for reason, pair in compare_results(results):
        if frozenset((pair.one.entry, pair.other.entry)) not in cleared:
            names = pair.one.network, pair.other.network
            for a, b in (names, names[::-1]):
                others.setdefault(a, {}).setdefault(reason, {})[b] = None
    return {
        network: tuple(
            f"{reason} {next(iter(names))}" + f" and {len(names) - 1} more" * (len(names) > 1)
            for reason, names in reasons.items()
        )
        for network, reasons in others.items()
    }


def compare_results(results: Iterable[NetworkResult]) -> Iterator[tuple[str, Pair]]:
    """Yield pairs of results with what is suspicious of them, a near copy once."""
    columns: dict[object, list[NetworkResult]] = defaultdict(list)
    for result in results:
        outcomes = result.outcomes
        episodes = outcomes.draws, outcomes.out_of, outcomes.numbering
        columns[result.loaded.result.spec_digest, *episodes].append(result)
    candidates: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in chain.from_iterable(map(find_pairs, columns.values())):
        if pair.one.weights != pair.other.weights:
            candidates[pair.one.network, pair.other.network].append(pair)
        elif pair.one.network != pair.other.network:
            yield DIFFERS if has_other_outcomes(pair) else SAME, pair
    compared = [nlargest(COLUMNS, pairs, key=itemgetter(2)) for pairs in candidates.values()]
    named = {result for pairs in compared for pair in pairs for result in pair[:2]}
    by_entry = sorted(named, key=lambda result: result.loaded.folder)
    answers = {result: result.answers for result in by_entry}  # reads every entry once
    for pairs in compared:
        for pair in pairs:
            if is_near_copy(answers[pair.one], answers[pair.other], pair.one.n_queries):
                yield NEAR, pair
                break


def find_pairs(column: Sequence[NetworkResult]) -> Iterator[Pair]:
    """Yield pairs of equal weights, and those whose counts correlate as those of copies."""
    out_of, n = column[0].outcomes.out_of, column[0].n_queries
    right = np.stack([result.outcomes.right for result in column]).astype(np.float32)
    _, weights = np.unique([result.weights for result in column], return_inverse=True)
    accuracy = right.mean(axis=1, dtype=np.float64) / out_of
    centered = right - right.mean(axis=1, keepdims=True)
    lengths = np.sqrt(np.einsum("ij,ij->i", centered, centered))
    centered /= np.where(lengths > 0, lengths, 1)[:, None]
    bounds = bound_correlation(accuracy) - MARGIN * (out_of > 1)
    for low in range(0, len(right), ROWS):
        part = slice(low, low + ROWS)
        correlations = centered[part] @ centered[low:].T
        p, q = accuracy[part, None], accuracy[low:]
        near = correlations >= np.minimum(bounds[part, None], bounds[low:])
        near &= (p * (1 - q) + q * (1 - p)) * n >= MIN_ERRORS
        near |= weights[part, None] == weights[low:]
        for i, j in np.argwhere(np.triu(near, 1)).tolist():
            yield Pair(column[low + i], column[low + j], float(correlations[i, j]))


def has_other_outcomes(pair: Pair) -> bool:
    """Return whether results differ by more than flips; a flip changes a count by about 1."""
    a, b = (result.outcomes.right.astype(np.float64) for result in pair[:2])
    share = SAME_WEIGHTS.get(pair.one.loaded.result.column.adaptation, OTHER_HEADS)
    return bool(((a - b) ** 2).sum() > share * pair.one.n_queries)


def bound_correlation(accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of answers from which on networks of this accuracy are near copies."""
    p = np.clip(accuracy, LEAST, MOST)
    q = p + FLIPPED * (1 - 2 * p)
    flipped = (1 - 2 * FLIPPED) * np.sqrt(p * (1 - p) / (q * (1 - q)))
    q = p + IMPROVED
    improved = np.sqrt(p * (1 - q) / ((1 - p) * q))
    return np.asarray(SLACK * np.minimum(flipped, improved), np.float64)


def is_near_copy(a: Answers, b: Answers, n: int) -> bool:
    """Return whether n answers of two networks correlate as those of copies."""
    p, q, both = (int(np.bitwise_count(bits).sum()) / n for bits in (a, b, a & b))
    spread = p * (1 - p) * q * (1 - q)
    bound = float(bound_correlation(np.array([p, q])).min())
    return spread > 0 and both - p * q >= bound * math.sqrt(spread)
