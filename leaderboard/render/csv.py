"""CSV (RFC 4180) for analysis: one line per number, fractions that parse back to equal floats.

A spreadsheet runs text that begins with = + - @ as a formula, so such text gets an apostrophe in
front; numbers stay numbers.
"""

import csv
import io
from collections.abc import Sequence
from typing import Any

from leaderboard.render.frame import Record, ScoreFrame, list_records

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return CSV with the fields of `Record`; unknown values are empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(Record._fields)
    for frame in frames:
        writer.writerows(map(guard_value, record) for record in list_records(frame))
    return out.getvalue()


def guard_value(value: Any) -> Any:
    """Return a text that is no formula, 1 or 0 for a yes or no, and other values as they are."""
    if isinstance(value, str):
        return guard_formula(value)
    return int(value) if isinstance(value, bool) else value


def guard_formula(value: str) -> str:
    return f"'{value}" if value.startswith(FORMULA) else value
