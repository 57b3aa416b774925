"""Networks whose outcomes hardly arise without copying, and equal weights, flagged on both sides.

They are shown, not refused; a maintainer who examined a pair adds it to `cleared` in board.json.

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
SCREENED, STEP, CHANCE = 128, 4, 0.1
"""Compared first is one count of four, of 128 or more, which may correlate by .1 less by chance."""
MIN_ERRORS = 50
"""Expected differences of independent networks below which small numbers are no evidence."""
COLUMNS = 3
"""Columns of a pair that are compared query by query, those whose counts correlate most."""
ROWS = 128
"""Rows compared with all others at a time: memory grows with the entries, not with the pairs."""
NEAR, SAME = "suspicious: near copy of", "the same weights as"
Answers = NDArray[np.uint8]
"""Answers of a network on a column, right or wrong, as packed bits."""
AnswerFacts = tuple[Answers, float, float]
"""Answers, their accuracy, and the correlation from which on others are near copies."""
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


Pair = tuple[NetworkResult, NetworkResult]
"""Two results of a column."""


def list_results(entries: Iterable[BoardEntry]) -> list[NetworkResult]:
    """Return every result of these entries with the name of its network."""
    return [
        NetworkResult(entry.name, network.name, loaded)
        for entry in entries
        for network in entry.networks
        for loaded in network.loaded
    ]


def find_suspicions(file: BoardFile, results: Iterable[NetworkResult]) -> Suspicions:
    """Return what is suspicious about each network; pairs in `cleared` are left out.

    A text names a reason, the first network of it by name, and the number of the others.
    """
    cleared = {frozenset(names) for names in file.cleared}
    others: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for reason, (one, other) in compare_results(results):
        if frozenset((one.entry, other.entry)) not in cleared:
            others[one.network][reason].add(other.network)
            others[other.network][reason].add(one.network)
    return {
        network: tuple(
            f"{reason} {min(names)}" + f" and {len(names) - 1} more" * (len(names) > 1)
            for reason, names in reasons.items()
        )
        for network, reasons in others.items()
    }


def compare_results(results: Iterable[NetworkResult]) -> Iterator[tuple[str, Pair]]:
    """Yield pairs of results with what is suspicious of them, a near copy once."""
    columns: dict[object, list[NetworkResult]] = defaultdict(list)
    by_weights: dict[str, dict[str, NetworkResult]] = defaultdict(dict)
    for result in results:
        outcomes = result.outcomes
        episodes = outcomes.draws, outcomes.out_of, outcomes.numbering
        columns[result.loaded.result.spec_digest, *episodes].append(result)
        by_weights[result.weights][result.network] = result
    for networks in by_weights.values():
        yield from ((SAME, pair) for pair in combinations(networks.values(), 2))
    candidates: dict[tuple[str, str], list[tuple[float, Pair]]] = defaultdict(list)
    for column in columns.values():
        for correlation, (one, other) in list_correlated(column):
            if one.weights != other.weights:
                candidates[one.network, other.network].append((correlation, (one, other)))
    compared = [nlargest(COLUMNS, pairs, key=itemgetter(0)) for pairs in candidates.values()]
    named = {result for pairs in compared for _, pair in pairs for result in pair}
    by_entry = sorted(named, key=lambda result: result.loaded.folder)  # reads every entry once
    answers = {result: result.answers for result in by_entry}
    p = np.array([np.bitwise_count(bits).sum() / r.n_queries for r, bits in answers.items()])
    numbers = zip(answers.values(), p, bound_correlation(p), strict=True)
    facts = dict(zip(answers, numbers, strict=True))
    for pairs in compared:
        for _, (one, other) in pairs:
            if is_near_copy(facts[one], facts[other], one.n_queries):
                yield NEAR, (one, other)
                break


def list_correlated(column: Sequence[NetworkResult]) -> Iterator[tuple[float, Pair]]:
    """Yield the results of a column whose counts correlate as those of copies.

    Few pairs of honest networks pass the first comparison, of one count of each `step`.
    """
    out_of, n = column[0].outcomes.out_of, column[0].n_queries
    counts = np.stack([result.outcomes.right for result in column]).astype(np.float32)
    step = 1 if out_of == 1 else max(1, min(STEP, counts.shape[1] // SCREENED))
    p = counts.mean(axis=1, dtype=np.float64) / out_of
    bounds = bound_correlation(p) - MARGIN * (out_of > 1)
    order = np.argsort(-bounds, kind="stable")  # then the smaller bound is that of the later row
    least = bounds[order].astype(np.float32)
    rows, screened = (normalize_rows(part[order]) for part in (counts, counts[:, ::step]))
    for low in range(0, len(rows), ROWS):
        block = slice(low, low + ROWS)
        is_near = (screened[block] @ screened[low:].T >= least[low:] - CHANCE).any(axis=0)
        later = low + np.flatnonzero(is_near)
        correlations = rows[block] @ rows[later].T
        for row, other in np.argwhere(correlations >= least[later]).tolist():
            i, j = sorted((order[low + row], order[later[other]]))
            is_later = low + row < later[other]
            if is_later and (p[i] * (1 - p[j]) + p[j] * (1 - p[i])) * n >= MIN_ERRORS:
                yield float(correlations[row, other]), (column[i], column[j])


def normalize_rows(counts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows whose products are their correlations, 0 for those without a spread."""
    centered = counts - counts.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    return np.asarray(centered / np.where(lengths > 0, lengths, 1), np.float32)


def bound_correlation(accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of answers from which on networks of this accuracy are near copies."""
    p = np.clip(accuracy, LEAST, MOST)
    q = p + FLIPPED * (1 - 2 * p)
    flipped = (1 - 2 * FLIPPED) * np.sqrt(p * (1 - p) / (q * (1 - q)))
    q = p + IMPROVED
    improved = np.sqrt(p * (1 - q) / ((1 - p) * q))
    return np.asarray(SLACK * np.minimum(flipped, improved), np.float64)


def is_near_copy(one: AnswerFacts, other: AnswerFacts, n: int) -> bool:
    """Return whether n answers of two networks correlate as those of copies."""
    (a, p, least), (b, q, bound) = one, other
    both = int(np.bitwise_count(a & b).sum()) / n
    spread = p * (1 - p) * q * (1 - q)
    return spread > 0 and both - p * q >= min(least, bound) * math.sqrt(spread)
