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
from itertools import combinations
from typing import Any, NamedTuple

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
Numbers = NDArray[Any]
Answers = NDArray[np.uint8]
"""Answers of a network on a column, right or wrong, as packed bits."""
Suspicions = dict[str, dict[str, list[str]]]
"""Network -> reason -> the other networks."""


class OutcomeRow(NamedTuple):
    """Outcomes of a network on a column: rows of equal `column` are compared."""

    entry: str
    network: str
    head: str
    column: tuple[str, str, int, int | bytes]
    weights: str
    outcomes: Outcomes
    loaded: Loaded

    @classmethod
    def of(cls, entry: str, network: str, loaded: Loaded) -> "OutcomeRow":
        result, outcomes = loaded.result, extract_outcomes(loaded).unweighted
        column = (result.spec_digest, outcomes.draws, outcomes.out_of, outcomes.numbering)
        head, weights = result.column.adaptation, result.backbone.identity
        return cls(entry, network, head, column, weights, outcomes, loaded)


def list_rows(entries: Iterable[BoardEntry]) -> list[OutcomeRow]:
    """Return the outcomes of every network of these entries on every column."""
    return [
        OutcomeRow.of(entry.name, network.name, loaded)
        for entry in entries
        for network in entry.networks
        for loaded in network.cells
    ]


def find_suspicions(file: BoardFile, rows: Sequence[OutcomeRow]) -> Suspicions:
    """Return what is suspicious about each network; pairs in `cleared` are left out."""
    found: dict[tuple[str, str, str], None] = {}
    cleared = {frozenset(pair) for pair in file.cleared}
    for reason, a, b in (*compare_weights(rows), *compare_answers(rows)):
        one, other = rows[a], rows[b]
        if frozenset((one.entry, other.entry)) not in cleared:
            found[reason, one.network, other.network] = None
            found[reason, other.network, one.network] = None
    suspicions: Suspicions = {}
    for reason, network, other_network in found:
        suspicions.setdefault(network, {}).setdefault(reason, []).append(other_network)
    return suspicions


def describe_suspicions(suspicions: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return one text per reason, with the first network and the number of others."""
    return tuple(
        f"{reason} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for reason, names in suspicions.items()
    )


def compare_weights(rows: Sequence[OutcomeRow]) -> Iterator[tuple[str, int, int]]:
    """Yield pairs of equal weights in several entries, with the reason."""
    places: dict[tuple[object, str], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row.column, row.weights].append(place)
    for group in places.values():
        for a, b in combinations(group, 2):
            one, other = rows[a], rows[b]
            if one.network != other.network:
                limit = SAME_WEIGHTS.get(one.head, OTHER_HEADS) * count_queries(one.outcomes)
                yield DIFFERS if count_differences(one, other) > limit else SAME, a, b


def count_queries(outcomes: Outcomes) -> int:
    return outcomes.right.size * outcomes.out_of


def count_differences(one: OutcomeRow, other: OutcomeRow) -> float:
    """Return the squared distance of the counts, about the number of queries that differ."""
    a, b = one.outcomes.right.astype(np.float64), other.outcomes.right.astype(np.float64)
    return float(((a - b) ** 2).sum())


def bound_correlation(accuracy: Numbers) -> NDArray[np.float64]:
    """Return the correlation of answers from which on networks of this accuracy are near copies."""
    p = np.clip(np.asarray(accuracy, np.float64), LEAST, MOST)
    q = p + FLIPPED * (1 - 2 * p)
    flipped = (1 - 2 * FLIPPED) * np.sqrt(p * (1 - p) / (q * (1 - q)))
    q = p + IMPROVED
    improved = np.sqrt(p * (1 - q) / ((1 - p) * q))
    return np.asarray(SLACK * np.minimum(flipped, improved), np.float64)


def compare_answers(rows: Sequence[OutcomeRow]) -> Iterator[tuple[str, int, int]]:
    """Yield pairs of other weights that are near copies on a column, each once."""
    columns: dict[object, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        columns[row.column].append(place)
    candidates: dict[tuple[str, str], list[tuple[float, int, int]]] = defaultdict(list)
    for places in columns.values():
        for a, b, correlation in pair_correlated([rows[i].outcomes for i in places]):
            one, other = rows[places[a]], rows[places[b]]
            if one.weights != other.weights:
                pair = correlation, places[a], places[b]
                candidates[one.network, other.network].append(pair)
    chosen = [sorted(pairs, reverse=True)[:COLUMNS] for pairs in candidates.values()]
    answers = read_answers(rows, {i for pairs in chosen for _, *pair in pairs for i in pair})
    for pairs in chosen:
        for _, a, b in pairs:
            if is_near_copy(answers[a], answers[b], count_queries(rows[a].outcomes)):
                yield NEAR, a, b
                break


def pair_correlated(outcomes: Sequence[Outcomes]) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs of rows whose counts correlate as those of copies, with the correlation."""
    right, out_of = np.stack([o.right for o in outcomes]).astype(np.float32), outcomes[0].out_of
    accuracy = right.mean(axis=1, dtype=np.float64) / out_of
    centered = right - right.mean(axis=1, keepdims=True)
    lengths = np.sqrt(np.einsum("ij,ij->i", centered, centered))
    centered /= np.where(lengths > 0, lengths, 1)[:, None]
    bounds = bound_correlation(accuracy) - MARGIN * (out_of > 1)
    n = count_queries(outcomes[0])
    for low in range(0, len(right), ROWS):
        part = slice(low, low + ROWS)
        correlations = centered[part] @ centered[low:].T
        p, q = accuracy[part, None], accuracy[low:]
        near = correlations >= np.minimum(bounds[part, None], bounds[low:])
        near &= (p * (1 - q) + q * (1 - p)) * n >= MIN_ERRORS
        first, second = np.nonzero(np.triu(near, 1))
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            yield low + a, low + b, float(correlations[a, b])


def is_near_copy(a: Answers, b: Answers, n: int) -> bool:
    """Return whether n answers of two networks correlate as those of copies."""
    p, q, both = (int(np.bitwise_count(bits).sum()) / n for bits in (a, b, a & b))
    spread = p * (1 - p) * q * (1 - q)
    bound = float(bound_correlation(np.array([p, q])).min())
    return spread > 0 and both - p * q >= bound * math.sqrt(spread)


def read_answers(rows: Sequence[OutcomeRow], places: Iterable[int]) -> dict[int, Answers]:
    """Return the answers of these rows, reading each entry once."""
    answers: dict[int, Answers] = {}
    for place in sorted(places, key=lambda place: rows[place].loaded.folder):
        records, right = rows[place].loaded.records, rows[place].outcomes.right > 0
        answers[place] = np.packbits(
            records.correct if isinstance(records, EpisodeRecords) else right
        )
    return answers
