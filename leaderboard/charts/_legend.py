"""Names of series below a plot, in as many columns as have room."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.charts._svg import DASHES, SERIES, SMALL, Drawing, fitted, widest

LINE, SWATCH, GAP = 18.0, 26.0, 14.0


def colour(i: int) -> str:
    """Of the i-th series; after the last colour they begin again with other dashes."""
    return SERIES[i % len(SERIES)]


def dash(i: int) -> str | None:
    return DASHES[i // len(SERIES) % len(DASHES)] or None


def per_row(labels: Sequence[str], width: float) -> int:
    room = widest(labels, SMALL) + SWATCH + GAP
    return max(1, min(len(labels), int(width // room)))


def height(labels: Sequence[str], width: float) -> float:
    return LINE * -(-len(labels) // per_row(labels, width)) if labels else 0.0


def draw_legend(drawing: Drawing, labels: Sequence[str], top: float, width: float) -> None:
    """Row by row from the left."""
    columns = per_row(labels, width)
    pitch = width / columns
    for i, label in enumerate(labels):
        x, y = pitch * (i % columns), top + LINE * (i // columns) + 9
        line = {"x1": x, "x2": x + SWATCH - 6, "y1": y, "y2": y}
        drawing.add(
            "line", **line, style=f"stroke:{colour(i)}", stroke_width=2, stroke_dasharray=dash(i)
        )
        text = fitted(label, pitch - SWATCH - 4, SMALL)
        drawing.hint(drawing.write(x + SWATCH, y + 4, text, font_size=SMALL), label)
