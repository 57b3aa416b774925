"""Title, column labels and caption of a report table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from leaderboard.ranking.tiers import ALPHA
from leaderboard.reports.render import shorten_columns, split_labels, to_percent
from leaderboard.reports.table import BETTER, WORSE, ReportRow, ReportScore, ReportTable

FLAGS = {
    "subset": "other image counts than official",
    "limited": "a quick test on few episodes",
    "short": "fewer episodes than the spec",
    "custom": "user images",
    "derived": "a train/test split made by fsbench",
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
OVERALL = "Overall: unweighted mean over the columns; '-' if one is missing."
SOURCE = "Source: accuracy on the pretraining data."


def caption_title(table: ReportTable) -> str:
    """Return the name of the table and what all its columns share."""
    kind = shorten_columns(table.columns)[1] or table.track
    return f"{table.title}: {kind}" if kind else table.title


def short_labels(table: ReportTable) -> list[str]:
    """Return the column labels without what all share."""
    return shorten_columns(table.columns)[0]


def group_labels(columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Group neighbouring columns of one data set: [('eurosat', ['5w1s', '5w5s']), ...]."""
    parts = split_labels(columns)[0]
    return [(key, [rest for _, rest in group]) for key, group in groupby(parts, lambda p: p[0])]


def caption_sentences(table: ReportTable) -> list[str]:
    """Return the sentences below the table."""
    sentences = [INTERVAL, BEST]
    if table.marked:
        sentences.append(
            f"{BETTER} significantly better and {WORSE} worse than {table.control} (paired, Holm "
            f"over the comparisons with it in a column, alpha {ALPHA:g})."
        )
    elif table.control is not None:
        sentences.append(f"{table.control} has no result here, so nothing is marked against it.")
    sentences += [OVERALL] if table.has_overall else []
    sentences += [SOURCE] if table.has_source else []
    for flag, letter in table.letters.items():
        meaning = f" ({FLAGS[flag]})" if flag in FLAGS else ""
        sentences.append(f"{letter}: {flag}{meaning}, not official.")
    return sentences + [f"{note.removesuffix('.')}." for note in table.notes]


def extra_columns(table: ReportTable) -> list[str]:
    """Return the names of the columns after the tasks."""
    extras = (("overall", table.has_overall), ("source", table.has_source))
    return [name for name, shown in extras if shown]


def row_texts(
    table: ReportTable,
    row: ReportRow,
    number: Callable[[ReportScore | None, ReportTable], str],
    escape: Callable[[str], str],
) -> list[str]:
    """Return the texts of a row: the name, a number per task, then the extra columns."""
    cells = [number(row.cells.get(column), table) for column in table.columns]
    cells += [number(row.overall, table)] if table.has_overall else []
    if table.has_source:
        cells.append("-" if row.source is None else to_percent(row.source))
    return [escape(row.name), *cells]


def format_superscript(cell: ReportScore, table: ReportTable) -> str:
    """Return the mark of significance and the letters of the flags."""
    return cell.mark() + "".join(table.letters[flag] for flag in cell.flags)
