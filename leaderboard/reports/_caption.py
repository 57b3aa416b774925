"""The words of a table: how columns are called, what numbers and marks mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from leaderboard.ranking.tiers import ALPHA
from leaderboard.reports.render import shorten_columns, split_labels, to_percent
from leaderboard.reports.table import BETTER, WORSE, ReportRow, ReportScore, ReportTable

FLAGS = {
    "subset": "other image counts than official",
    "limited": "a smoke run of few episodes",
    "short": "fewer episodes than the spec",
    "custom": "images of one's own",
    "derived": "a train/test split made here",
    "shard": "a part of the episodes",
}
INTERVAL = (
    "Accuracy in percent with the half-width of its 95 % interval, 1.96 s / sqrt(n) over the "
    "episodes or test images, not over pretraining seeds."
)
BEST = (
    "Bold: the best of a column and all that are not significantly worse (paired over shared "
    f"episodes or images, Holm over the comparisons with the best, alpha {ALPHA:g})."
)
OVERALL = "Overall: unweighted mean over the columns; '-' where one is missing."
SOURCE = "Source: accuracy on the data of pretraining."


def caption_title(sheet: ReportTable) -> str:
    """The name of the table and what all its columns share."""
    kind = shorten_columns(sheet.columns)[1] or sheet.track
    return f"{sheet.title}: {kind}" if kind else sheet.title


def short_labels(sheet: ReportTable) -> list[str]:
    """Of the columns, without what all share."""
    return shorten_columns(sheet.columns)[0]


def group_labels(columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Group neighbouring columns of one data set: [('eurosat', ['5w1s', '5w5s']), ...]."""
    parts = split_labels(columns)[0]
    return [(key, [rest for _, rest in group]) for key, group in groupby(parts, lambda p: p[0])]


def caption_sentences(sheet: ReportTable) -> list[str]:
    """What stands below the table."""
    found = [INTERVAL, BEST]
    if sheet.marked:
        found.append(
            f"{BETTER} significantly better and {WORSE} worse than {sheet.control} (paired, Holm "
            f"over the comparisons with it in a column, alpha {ALPHA:g})."
        )
    elif sheet.control is not None:
        found.append(f"{sheet.control} has no result here, so nothing is marked against it.")
    found += [OVERALL] if sheet.has_overall else []
    found += [SOURCE] if sheet.has_source else []
    for flag, letter in sheet.letters.items():
        meaning = f" ({FLAGS[flag]})" if flag in FLAGS else ""
        found.append(f"{letter}: {flag}{meaning}, not official.")
    return found + [f"{note.removesuffix('.')}." for note in sheet.notes]


def extra_columns(sheet: ReportTable) -> list[str]:
    """Columns after the tasks."""
    found = (("overall", sheet.has_overall), ("source", sheet.has_source))
    return [name for name, there in found if there]


def row_texts(
    sheet: ReportTable,
    row: ReportRow,
    number: Callable[[ReportScore | None, ReportTable], str],
    escape: Callable[[str], str],
) -> list[str]:
    """A row in the spelling of a format: the name, a number a task, then those of `ends`."""
    cells = [number(row.cells.get(column), sheet) for column in sheet.columns]
    cells += [number(row.overall, sheet)] if sheet.has_overall else []
    if sheet.has_source:
        cells.append("-" if row.source is None else to_percent(row.source))
    return [escape(row.name), *cells]


def format_superscript(cell: ReportScore, sheet: ReportTable) -> str:
    """Mark of significance, then the letters of the flags."""
    return cell.mark() + "".join(sheet.letters[flag] for flag in cell.flags)
