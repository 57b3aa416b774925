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


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


class Labels:
    """Places labels one by one inside a plot; one that finds no room is left to the pointer."""

    def __init__(self, plot: Plot, points: Sequence[tuple[float, float]]) -> None:
        self.plot = plot
        self.taken = [Box(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in points]

    def place(self, drawing: Drawing, label: str, x: float, y: float) -> bool:
        """Right of the point, else left, above, below it; whether it found room."""
        text = fitted(label, ROOM, SMALL)
        wide = extent(text, SMALL)
        for left, base in (
            (x + 8, y + 4),
            (x - 8 - wide, y + 4),
            (x - wide / 2, y - 9),
            (x - wide / 2, y + 18),
        ):
            box = Box(left, base - SMALL, left + wide, base + 3)
            if self.free(box):
                self.taken.append(box)
                anchor = "start" if left > x else "end" if left + wide < x else "middle"
                at = {"start": left, "end": left + wide, "middle": x}[anchor]
                drawing.write(at, base, text, anchor, font_size=SMALL, pointer_events="none")
                return True
        return False

    def free(self, box: Box) -> bool:
        p = self.plot
        inside = box.left >= p.left and box.right <= p.right
        inside = inside and box.top >= p.top and box.bottom <= p.bottom
        return inside and not any(box.meets(other) for other in self.taken)
