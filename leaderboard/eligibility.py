"""Reasons for which entries of a table are not ranked by a table.

An excluded entry is listed with its numbers below the ranked ones. Excluded are, in this order:
entries on other images or episodes than the table's, entries whose classifiers collapsed or gave
non-finite logits on more than a tenth of the episodes of a column (never a random control, whose
share of such episodes is noted), and short and limited entries. What excludes one seed excludes its
row. Entries that lack a column are left to the ranking itself. A board can state that fewer
episodes than those of the spec are enough (`episodes` in board.json).
"""

import math
from collections.abc import Iterable, Mapping

from fsbench.core.schema import Result
from leaderboard.record import Column

PARTIAL = {"short", "limited"}
"""Flags of results over fewer episodes or epochs than their spec."""
MOST_FAILED = 0.1
"""Share of a column's episodes that may collapse or be non-finite."""

FAILURES = {"one class for all queries": "collapsed", "non-finite logits": "non_finite"}
"""What failed in an episode, and the field of a result that counts it."""
ResultsByColumn = Mapping[str, Result]
"""Label of a column -> the result of a network."""


def explain_exclusion(
    measured: Iterable[Result],
    results: ResultsByColumn,
    labels: Mapping[Column, str],
    episodes: Mapping[str, int],
) -> str:
    """Return why a network is not ranked; "" if it is, or if it only lacks a column.

    measured: all of its results; results: those in the table; labels: of the table's columns;
    episodes: head -> as many as make a result whole.
    """
    reason = explain_deviation(measured, results, labels) or explain_failures(results)
    if not reason and len(results) == len(labels):
        flags = list_partial(results.values(), episodes)
        reason = f"{', '.join(flags)}: not all episodes" if flags else ""
    return reason


def explain_deviation(
    measured: Iterable[Result], results: ResultsByColumn, labels: Mapping[Column, str]
) -> str:
    """Return which column a network has on other images or episodes only; "" if none."""
    names = {result.column for result in measured}
    others = [c.name for c, label in labels.items() if label not in results and c.name in names]
    return f"{others[0]} is on other images or episodes than this table's" if others else ""


def explain_failures(results: ResultsByColumn) -> str:
    """Return the first column with too many failed episodes; "" for none and for a control."""
    for column, result in results.items():
        for failure, field in FAILURES.items():
            count = getattr(result, field)
            if count > MOST_FAILED * result.score.n and result.backbone.random_init is None:
                return f"{failure} in {count} of {result.score.n} episodes of {column}"
    return ""


def list_partial(results: Iterable[Result], episodes: Mapping[str, int]) -> list[str]:
    """Return the flags of results that are not whole; episodes: as in `explain_exclusion`."""
    partial = (r for r in results if r.score.n < episodes.get(r.task.head or "", math.inf))
    return sorted({flag for result in partial for flag in result.flags} & PARTIAL)


def describe_failures(results: ResultsByColumn) -> list[str]:
    """Return the share of failed episodes of a random control."""
    controls = [r for r in results.values() if r.backbone.random_init is not None]
    n = sum(result.score.n for result in controls)
    counts = {w: sum(getattr(result, f) for result in controls) for w, f in FAILURES.items()}
    return [f"{what} in {count / n:.1%} of episodes" for what, count in counts.items() if count]
