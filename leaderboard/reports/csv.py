"""CSV (RFC 4180) for analysis: one line per number, fractions that parse back to equal floats.

A spreadsheet runs text that begins with = + - @ as a formula, so such text gets an apostrophe in
front; numbers stay numbers.
"""

import csv
import io
from collections.abc import Iterator, Sequence

from leaderboard.reports.render import finite_or_none
from leaderboard.reports.table import ReportRow, ReportScore, ReportTable

SUFFIX = "csv"
HEADER = (
    "table", "track", "entry", "tier", "column", "mean", "ci95", "n", "best", "control",
    "gap_to_control", "gap_ci95", "p_holm", "flags",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def make(tables: Sequence[ReportTable]) -> str:
    """Return CSV; mean, ci95 (half-width), gap and gap_ci95 are fractions, unknown values empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADER)
    for table in tables:
        for row in table.rows:
            writer.writerows(make_csv_lines(table, row))
    return out.getvalue()


def make_csv_lines(table: ReportTable, row: ReportRow) -> Iterator[list[str]]:
    scores = [(c, row.cells[c]) for c in table.columns if c in row.cells]
    texts = (table.title, table.track, row.name, format_csv_number(row.tier))
    names = [guard_formula(text) for text in texts]
    for column, cell in [*scores, *([("overall", row.overall)] if row.overall else [])]:
        yield [*names, guard_formula(column), *make_csv_numbers(table, cell)]
    if row.source is not None:
        yield [*names, "source", repr(row.source), *[""] * (len(HEADER) - len(names) - 2)]


def make_csv_numbers(table: ReportTable, cell: ReportScore) -> list[str]:
    mean, ci95, n = cell.score
    gap = [None, None] if cell.gap is None else [cell.gap.gap, finite_or_none(cell.gap.ci95)]
    control = guard_formula(table.control) if table.control and cell.gap else ""
    score = map(format_csv_number, (mean, finite_or_none(ci95), n, int(cell.best)))
    comparison = map(format_csv_number, (*gap, cell.p))
    return [*score, control, *comparison, guard_formula(" ".join(cell.flags))]


def format_csv_number(value: float | None) -> str:
    """Return the shortest digits that parse back to this number."""
    return "" if value is None else repr(value)


def guard_formula(value: str) -> str:
    return f"'{value}" if value.startswith(FORMULA) else value
