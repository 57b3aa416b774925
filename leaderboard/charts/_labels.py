"""Labels beside points, each where it hides neither a point nor another label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leaderboard.charts._axes import Plot
from leaderboard.charts._svg import SMALL, Drawing, extent, fitted

ROOM = 170.0
"""Pixels that a label may take."""
MARK = 6.0
"""Half the side of the square around a point that stays free."""
HAIR = 2.0
"""Pixels that stay free on both sides of a line."""


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def around(x: float, y: float) -> Box:
    """The square of a point's mark."""
    return Box(x - MARK, y - MARK, x + MARK, y + MARK)


def along(x1: float, y1: float, x2: float, y2: float) -> Box:
    """A level or upright line."""
    return Box(min(x1, x2) - HAIR, min(y1, y2) - HAIR, max(x1, x2) + HAIR, max(y1, y2) + HAIR)


class Labels:
    """Places labels one by one inside a plot; one that finds no room is left to the pointer."""

    def __init__(self, plot: Plot, taken: Sequence[Box]) -> None:
        self.plot = plot
        self.taken = list(taken)

    def place(self, drawing: Drawing, label: str, x: float, y: float) -> bool:
        """Beside, above or below the point, where the first room is; whether there was any."""
        text = fitted(label, ROOM, SMALL)
        wide = extent(text, SMALL)
        for left, base in spots(x, y, wide):
            box = Box(left, base - SMALL, left + wide, base + 3)
            if self.free(box):
                self.taken.append(box)
                anchor, at = aligned(x, left, wide)
                drawing.write(at, base, text, anchor, font_size=SMALL, pointer_events="none")
                return True
        return False

    def free(self, box: Box) -> bool:
        p = self.plot
        inside = box.left >= p.left and box.right <= p.right
        inside = inside and box.top >= p.top - SMALL and box.bottom <= p.bottom
        return inside and not any(box.meets(other) for other in self.taken)


def spots(x: float, y: float, wide: float) -> list[tuple[float, float]]:
    """Left end and baseline of a label: right, left, then the corners, then above and below."""
    right, left, middle = x + 8, x - 8 - wide, x - wide / 2
    corners = [(side, base) for base in (y - 8, y + 17) for side in (right - 3, left + 3)]
    return [(right, y + 4), (left, y + 4), *corners, (middle, y - 9), (middle, y + 18)]


def aligned(x: float, left: float, wide: float) -> tuple[str, float]:
    """Text anchor and its place, so that a narrower font stays at the point."""
    if left > x:
        return "start", left
    return ("end", left + wide) if left + wide < x else ("middle", x)
