"""CSV (RFC 4180) for analysis: one line per number, fractions that parse back to equal floats.

A spreadsheet runs text that begins with = + - @ as a formula, so such text gets an apostrophe in
front; numbers stay numbers.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from leaderboard.render.frame import FrameScore, ScoreFrame

if TYPE_CHECKING:
    from pandas import DataFrame

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
TYPES = {
    **{"tier": "Int64", "n": "int64", "best": "bool"},
    **dict.fromkeys(("overall", "mean", "ci95", "gap", "gap_ci95", "p"), "float64"),
    **dict.fromkeys(("macs", "peak_memory_bytes"), "Int64"),
}
"""Types of the columns of numbers."""


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return CSV with the fields of `FrameScore`; unknown values are empty, yes or no is 1 or 0."""
    table = build_frame(frames).astype({"best": "int64"}).map(guard_formula)
    return str(table.to_csv(index=False, lineterminator="\r\n"))


def build_frame(frames: Iterable[ScoreFrame]) -> "DataFrame":
    """Return the numbers as a pandas table with the fields of `FrameScore`."""
    from pandas import DataFrame

    scores = [score for frame in frames for score in frame.records()]
    table = DataFrame(scores, columns=list(FrameScore._fields))
    table["flags"] = [", ".join(flags) for flags in table["flags"]]
    return table.astype(TYPES)


def guard_formula(value: Any) -> Any:
    """Return a value, but of a text that begins like a formula one with an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
