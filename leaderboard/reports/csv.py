"""CSV (RFC 4180) for analysis: one line a number, in fractions that parse back to the same floats.

A spreadsheet runs text that begins with = + - @ as a formula, so such text gets an apostrophe in
front; numbers stay numbers.
"""

from __future__ import annotations

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


def make(sheets: Sequence[ReportTable]) -> str:
    """mean, ci95 (half-width), gap and gap_ci95 are fractions; what is unknown is empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADER)
    for sheet in sheets:
        for row in sheet.rows:
            writer.writerows(csv_lines(sheet, row))
    return out.getvalue()


def csv_lines(sheet: ReportTable, row: ReportRow) -> Iterator[list[str]]:
    held = [(c, row.cells[c]) for c in sheet.columns if c in row.cells]
    for column, cell in [*held, *([("overall", row.overall)] if row.overall else [])]:
        yield [*csv_names(sheet, row, column), *csv_numbers(sheet, cell)]
    if row.source is not None:
        empty = [""] * (len(HEADER) - 6)
        yield [*csv_names(sheet, row, "source"), repr(row.source), *empty]


def csv_names(sheet: ReportTable, row: ReportRow, column: str) -> list[str]:
    shown = [sheet.title, sheet.track, row.name, csv_number(row.tier), column]
    return [guard_formula(each) for each in shown]


def csv_numbers(sheet: ReportTable, cell: ReportScore) -> list[str]:
    mean, ci95, n = cell.score
    gap = [None, None] if cell.gap is None else [cell.gap.gap, finite_or_none(cell.gap.ci95)]
    control = guard_formula(sheet.control) if sheet.control and cell.gap else ""
    shown = [
        csv_number(mean),
        csv_number(finite_or_none(ci95)),
        csv_number(n),
        csv_number(int(cell.best)),
        control,
    ]
    return [*shown, *map(csv_number, (*gap, cell.p)), guard_formula(" ".join(cell.flags))]


def csv_number(value: float | None) -> str:
    """The shortest digits that parse back to this number."""
    return "" if value is None else repr(value)


def guard_formula(value: str) -> str:
    return f"'{value}" if value.startswith(FORMULA) else value
