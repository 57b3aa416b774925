"""CSV (RFC 4180) for analysis: one line a number, in fractions that parse back to the same floats.

A spreadsheet runs text that begins with = + - @ as a formula, so such text gets an apostrophe in
front; numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from leaderboard.reports._sheet import Cell, Row, Sheet
from leaderboard.reports.render import finite

SUFFIX = "csv"
HEADER = (
    "table", "track", "entry", "tier", "column", "mean", "ci95", "n", "best", "control",
    "gap_to_control", "gap_ci95", "p_holm", "flags",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def make(sheets: Sequence[Sheet]) -> str:
    """mean, ci95 (half-width), gap and gap_ci95 are fractions; what is unknown is empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADER)
    for sheet in sheets:
        for row in sheet.rows:
            writer.writerows(lines(sheet, row))
    return out.getvalue()


def lines(sheet: Sheet, row: Row) -> Iterator[list[str]]:
    held = [(c, row.cells[c]) for c in sheet.columns if c in row.cells]
    for column, cell in [*held, *([("overall", row.overall)] if row.overall else [])]:
        yield [*names(sheet, row, column), *numbers(sheet, cell)]
    if row.source is not None:
        empty = [""] * (len(HEADER) - 6)
        yield [*names(sheet, row, "source"), repr(row.source), *empty]


def names(sheet: Sheet, row: Row, column: str) -> list[str]:
    shown = [sheet.title, sheet.track, row.name, text(row.tier), column]
    return [guarded(each) for each in shown]


def numbers(sheet: Sheet, cell: Cell) -> list[str]:
    mean, ci95, n = cell.score
    gap = [None, None] if cell.gap is None else [cell.gap.gap, finite(cell.gap.ci95)]
    control = guarded(sheet.control) if sheet.control and cell.gap else ""
    shown = [text(mean), text(finite(ci95)), text(n), text(int(cell.best)), control]
    return [*shown, *map(text, (*gap, cell.p)), guarded(" ".join(cell.flags))]


def text(value: float | None) -> str:
    """The shortest digits that parse back to this number."""
    return "" if value is None else repr(value)


def guarded(value: str) -> str:
    return f"'{value}" if value.startswith(FORMULA) else value
