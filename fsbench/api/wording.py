"""What a paired comparison says, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MILLION = 1_000_000


def sentence(found: Mapping[str, Any]) -> str:
    """e.g. 'A is better by 1.2 points (95 % 0.4 to 2.0)', from the fields of a Gap but `words`."""
    mixed = " and " in found["unit"]
    n = f"these {found['unit']}" if mixed else f"{found['n']:,} {found['unit']}"
    if found["better"]:
        sign = 1 if found["better"] == "A" else -1
        low, high = sorted(sign * found[end] for end in ("low", "high"))
        by = points(abs(found["gap"]))
        return f"{found['better']} is better by {by} points (95 % {points(low)} to {points(high)})"
    if found["superiority"] == 0.5 and found["low"] == found["high"] == 0:
        return f"no difference in any of {n}"
    said = f"not distinguishable at {n}"
    needed = found["needed"]
    return said if needed is None or needed <= found["n"] else f"{said}; {wanted(needed)}"


def wanted(needed: int) -> str:
    """How many pairs would find such a gap, to two digits."""
    if needed > MILLION:
        return "more than a million would be needed"
    rounded = round(needed, 2 - len(str(needed))) if needed >= 100 else needed
    return f"about {rounded:,} would be needed"


def points(fraction: float) -> str:
    """e.g. '1.2'; two digits below one tenth of a point."""
    value = 100 * fraction
    return f"{value:.2f}" if 0 < abs(value) < 0.1 else f"{value:.1f}"


def small(p: float) -> str:
    """A p-value; three digits, more where they would all be zero."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1g}"
