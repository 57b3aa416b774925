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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import combinations
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
Suspicions = dict[str, dict[str, list[str]]]
"""Network -> reason -> the other networks."""


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


Pair = tuple[str, NetworkResult, NetworkResult]
"""What is suspicious, and the two results."""
Candidate = tuple[float, NetworkResult, NetworkResult]
"""Correlation of the counts of two results."""


def list_results(entries: Iterable[BoardEntry]) -> list[NetworkResult]:
    """Return every result of these entries with the name of its network."""
    return [
        NetworkResult(entry.name, network.name, loaded)
        for entry in entries
        for network in entry.networks
        for loaded in network.cells
    ]


def find_suspicions(file: BoardFile, results: Sequence[NetworkResult]) -> Suspicions:
    """Return what is suspicious about each network; pairs in `cleared` are left out."""
    columns: dict[object, list[NetworkResult]] = defaultdict(list)
    for result in results:
        outcomes = result.outcomes
        episodes = outcomes.draws, outcomes.out_of, outcomes.numbering
        columns[result.loaded.result.spec_digest, *episodes].append(result)
    pairs = [pair for column in columns.values() for pair in compare_weights(column)]
    pairs += compare_answers(columns.values())
    cleared = {frozenset(names) for names in file.cleared}
    others: dict[str, dict[str, dict[str, None]]] = {}
    for reason, one, other in pairs:
        if frozenset((one.entry, other.entry)) not in cleared:
            for a, b in ((one.network, other.network), (other.network, one.network)):
                others.setdefault(a, {}).setdefault(reason, {})[b] = None
    return {
        network: {reason: list(names) for reason, names in reasons.items()}
        for network, reasons in others.items()
    }


def describe_suspicions(suspicions: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return one text per reason, with the first network and the number of others."""
    return tuple(
        f"{reason} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for reason, names in suspicions.items()
    )


def compare_weights(column: Iterable[NetworkResult]) -> Iterator[Pair]:
    """Yield the pairs of equal weights; the squared distance of counts is about their flips."""
    results_by_weights: dict[str, list[NetworkResult]] = defaultdict(list)
    for result in column:
        results_by_weights[result.weights].append(result)
    for results in results_by_weights.values():
        for one, other in combinations(results, 2):
            a, b = (result.outcomes.right.astype(np.float64) for result in (one, other))
            head = one.loaded.result.column.adaptation
            limit = SAME_WEIGHTS.get(head, OTHER_HEADS) * one.n_queries
            if one.network != other.network:
                yield DIFFERS if ((a - b) ** 2).sum() > limit else SAME, one, other


def bound_correlation(accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of answers from which on networks of this accuracy are near copies."""
    p = np.clip(accuracy, LEAST, MOST)
    q = p + FLIPPED * (1 - 2 * p)
    flipped = (1 - 2 * FLIPPED) * np.sqrt(p * (1 - p) / (q * (1 - q)))
    q = p + IMPROVED
    improved = np.sqrt(p * (1 - q) / ((1 - p) * q))
    return np.asarray(SLACK * np.minimum(flipped, improved), np.float64)


def compare_answers(columns: Iterable[Sequence[NetworkResult]]) -> Iterator[Pair]:
    """Yield pairs of other weights that are near copies on a column, each once."""
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for column in columns:
        for i, j, correlation in pair_correlated([result.outcomes for result in column]):
            one, other = column[i], column[j]
            if one.weights != other.weights:
                candidates[one.network, other.network].append((correlation, one, other))
    pairs = [nlargest(COLUMNS, group, key=itemgetter(0)) for group in candidates.values()]
    compared = {result for group in pairs for _, *both in group for result in both}
    by_entry = sorted(compared, key=lambda result: result.loaded.folder)
    answers = {result: result.answers for result in by_entry}  # reads every entry once
    for group in pairs:
        for _, one, other in group:
            if is_near_copy(answers[one], answers[other], one.n_queries):
                yield NEAR, one, other
                break


def pair_correlated(outcomes: Sequence[Outcomes]) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs of rows whose counts correlate as those of copies, with the correlation."""
    right, out_of = np.stack([o.right for o in outcomes]).astype(np.float32), outcomes[0].out_of
    accuracy = right.mean(axis=1, dtype=np.float64) / out_of
    centered = right - right.mean(axis=1, keepdims=True)
    lengths = np.sqrt(np.einsum("ij,ij->i", centered, centered))
    centered /= np.where(lengths > 0, lengths, 1)[:, None]
    bounds = bound_correlation(accuracy) - MARGIN * (out_of > 1)
    n = out_of * right.shape[1]
    for low in range(0, len(right), ROWS):
        part = slice(low, low + ROWS)
        correlations = centered[part] @ centered[low:].T
        p, q = accuracy[part, None], accuracy[low:]
        near = correlations >= np.minimum(bounds[part, None], bounds[low:])
        near &= (p * (1 - q) + q * (1 - p)) * n >= MIN_ERRORS
        for i, j in np.argwhere(np.triu(near, 1)).tolist():
            yield low + i, low + j, float(correlations[i, j])


def is_near_copy(a: Answers, b: Answers, n: int) -> bool:
    """Return whether n answers of two networks correlate as those of copies."""
    p, q, both = (int(np.bitwise_count(bits).sum()) / n for bits in (a, b, a & b))
    spread = p * (1 - p) * q * (1 - q)
    bound = float(bound_correlation(np.array([p, q])).min())
    return spread > 0 and both - p * q >= bound * math.sqrt(spread)
