"""CSV (RFC 4180) for analysis: one line per number, fractions that parse back to equal floats.

A spreadsheet runs text that begins with = + - @ as a formula, so such text gets an apostrophe in
front; numbers stay numbers.
"""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from leaderboard.render.frame import FrameScore, ScoreFrame

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return CSV with the fields of `FrameScore`; unknown values are empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(FrameScore._fields)
    for frame in frames:
        writer.writerows(map(guard_value, score) for score in frame.records())
    return out.getvalue()


def guard_value(value: Any) -> Any:
    """Return a text that is no formula, texts as one, 1 or 0 for a yes or no, nothing for nan."""
    if isinstance(value, str):
        return guard_formula(value)
    if isinstance(value, tuple):
        return guard_formula(", ".join(value))
    if isinstance(value, bool):
        return int(value)
    return "" if isinstance(value, float) and math.isnan(value) else value


def guard_formula(value: str) -> str:
    return f"'{value}" if value.startswith(FORMULA) else value
