"""Reasons for which entries of a table are not ranked by a table.

An excluded entry is listed with its numbers below the ranked ones. Excluded are, in this order:
entries on other images or episodes than the table's, entries whose classifiers collapsed or gave
non-finite logits on more than a tenth of the episodes of a column (never a random control, whose
share of such episodes is a flag), and short and limited entries. Entries that lack a column are
left to the ranking itself. A board can state that fewer episodes than those of the spec are enough
(`episodes` in board.json).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from fsbench.results.entry import Loaded
from leaderboard.record import Column

PARTIAL = {"short", "limited"}
"""Flags of results over fewer episodes or epochs than their spec."""
MOST_FAILED = 0.1
"""Share of a column's episodes that may collapse or be non-finite."""

FAILURES = {"one class for all queries": "collapsed", "non-finite logits": "non_finite"}
"""What failed in an episode, and the field of a result that counts it."""
ResultsByColumn = Mapping[str, Loaded]


def exclude_rows(
    members: Mapping[str, Sequence[str]],
    measured: Mapping[str, Sequence[Loaded]],
    results: Mapping[str, ResultsByColumn],
    labels: Mapping[Column, str],
    episodes: Mapping[str, int],
) -> dict[str, str]:
    """Return row -> reason: what excludes one of its seeds excludes the row.

    members: row -> its networks; measured: network -> all of its results; results: network ->
    column label -> its result in this table; episodes: head -> as many as make a result whole.
    """
    reasons: dict[str, str] = {}
    for row, names in members.items():
        for name in names:
            by_column = results[name]
            reason = explain_deviation(measured[name], by_column, labels)
            reason = reason or explain_failures(by_column)
            if not reason and len(by_column) == len(labels):
                flags = list_partial(by_column.values(), episodes)
                reason = f"{', '.join(flags)}: not all episodes" if flags else ""
            if reason:
                reasons.setdefault(row, reason if name == row else f"{reason} ({name})")
    return reasons


def explain_deviation(
    measured: Iterable[Loaded], by_column: ResultsByColumn, labels: Mapping[Column, str]
) -> str:
    """Return which column a network has on other images or episodes only; "" if none."""
    names = {loaded.result.column for loaded in measured}
    others = [c.name for c, label in labels.items() if label not in by_column and c.name in names]
    return f"{others[0]} is on other images or episodes than this table's" if others else ""


def explain_failures(by_column: ResultsByColumn) -> str:
    """Return the first column with too many failed episodes; "" for none and for a control."""
    for column, loaded in by_column.items():
        result = loaded.result
        for words, field in FAILURES.items():
            count = getattr(result, field)
            if count > MOST_FAILED * result.score.n and result.backbone.random_init is None:
                return f"{words} in {count} of {result.score.n} episodes of {column}"
    return ""


def flag_failures(by_column: ResultsByColumn) -> list[str]:
    """Return the share of failed episodes of a random control."""
    results = [x.result for x in by_column.values() if x.result.backbone.random_init is not None]
    n = sum(result.score.n for result in results)
    counts = {w: sum(getattr(result, f) for result in results) for w, f in FAILURES.items()}
    return [f"{words} in {count / n:.1%} of episodes" for words, count in counts.items() if count]


def list_partial(results: Iterable[Loaded], episodes: Mapping[str, int]) -> list[str]:
    """Return the flags of results that are not whole; episodes: as in `exclude_rows`."""
    partial = (
        loaded.result
        for loaded in results
        if loaded.result.score.n < episodes.get(loaded.result.task.head or "", math.inf)
    )
    return sorted({flag for result in partial for flag in result.flags} & PARTIAL)
