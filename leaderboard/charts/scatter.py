"""One number of every entry against another: a labelled point each, and the Pareto front."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, radians, sin
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core import plotting
from fsbench.core.plotting import FONT_SIZE, GAIN, GUIDE, INK, LOSS, PAPER, Drawing, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, TOP, RIGHT, FOOT = 364.0, 24.0, 14.0, 44.0
LABEL_SHARE = 0.36
"""Share of the width that a label may take."""
BESIDE = 10.0
SHIFTS = tuple(k // 2 * (-1) ** k * BESIDE for k in range(1, 12))
"""Pixels between two points, and how far one may lie beside its place."""
MARK, HAIR = 6.0, 2.0
"""Pixels that stay free around a point, and on both sides of a line."""
DISTANCES = (8.0, 20.0, 34.0, 50.0, 70.0)
"""Between a point and its label, in pixels; from the second on, a line joins them."""
ANGLES = (0, 180, 90, -90, 45, 135, -45, -135, 22, 158, -22, -158, 67, 113, -67, -113)


@dataclass(frozen=True)
class Point:
    """An entry at (x, y) and the ends of the 95 % interval of y.

    significant: whether y differs from the level of the chart; single: drawn hollow, because it is
    of one pretraining seed.
    """

    label: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    significant: bool = False
    single: bool = False


@dataclass(frozen=True)
class Scatter:
    """x, y: labels of the axes, with units. y is a fraction drawn in percent.

    percent_x: x is a fraction, too. log_x: x is positive and drawn by its logarithm. level: a value
    of y with a dashed line, e.g. a gain of 0; diagonal: a dashed line where x equals y. front: a
    line joins the points that no other beats in both, x being a cost.
    """

    title: str
    x: str
    y: str
    points: tuple[Point, ...]
    percent_x: bool = True
    log_x: bool = False
    level: float | None = None
    diagonal: bool = False
    front: bool = False

    @property
    def best(self) -> list[Point]:
        """Points of the front, if it is drawn."""
        return pareto_front(self.points) if self.front else []

    @property
    def description(self) -> str:
        text = f"{self.y} against {self.x} of {len(self.points)} entries."
        names = ", ".join(point.label for point in self.best)
        return f"{text} None beats in both: {names}." if names else text

    def scaled_x(self, point: Point) -> float:
        """Return x as the axis shows it."""
        return 100 * point.x if self.percent_x else point.x

    def colour(self, point: Point) -> str:
        """Return blue and orange for what is significant or on the front, else black."""
        if point in self.best:
            return GAIN
        return (GAIN if point.y >= (self.level or 0.0) else LOSS) if point.significant else INK

    def hint(self, point: Point) -> str:
        """Return name and numbers of a point."""
        x = f"{plotting.percent(point.x)} %" if self.percent_x else plotting.short_number(point.x)
        ends = plotting.interval(point.low, point.high)
        return f"{point.label}: {x}, {plotting.percent(point.y)} %{ends}"


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Return points that no other matches in x (a cost) and y and beats in one, cheapest first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda p: (p.x, -p.y)):
        if not front or point.y > front[-1].y or (point.x, point.y) == (front[-1].x, front[-1].y):
            front.append(point)
    return front


@plotting.style()
def draw(chart: Scatter, width: float = 720) -> Drawing:
    """Return points with intervals; coloured where they are significant or on the front."""
    drawing = Drawing.create(chart.title, chart.description, width, HEIGHT)
    axes = drawing.add_axes(44, TOP, RIGHT, FOOT)
    drawing.write(2, 12, fit_text(chart.y, width))
    axes.set_xlabel(fit_text(chart.x, width - 60))
    axes.set_xlim(*plotting.padded([chart.scaled_x(p) for p in chart.points], chart.log_x))
    ends = [100 * v for p in chart.points for v in (p.y, p.low, p.high) if v is not None]
    level = () if chart.level is None else (100 * chart.level,)
    axes.set_ylim(*plotting.padded([*plotting.clip_range(ends), *level]))
    if chart.log_x:
        plotting.set_log_scale(axes)
    axes.grid(axis="y")
    axes.tick_params(axis="y", length=0)
    axes.spines.left.set_visible(False)
    add_lines(axes, chart)
    places = spread_points(axes, chart)
    for point, (x, y) in places.items():
        colour = chart.colour(point)
        if point.low is not None and point.high is not None:
            ends = [100 * point.low, 100 * point.high]
            axes.plot([x, x], ends, color=colour, alpha=0.5, linewidth=1)
        if y != 100 * point.y:
            mark = plotting.mark_clipped(axes, x, y, colour, "top" if point.y > 0 else "bottom")
        else:
            (mark,) = axes.plot(x, y, "o", color=colour)
        if point.single:
            mark.set(markerfacecolor=PAPER)
        drawing.add_hint(mark, chart.hint(point))
    add_labels(axes, chart, places)
    return drawing


def spread_points(axes: "Axes", chart: Scatter) -> dict[Point, tuple[float, float]]:
    """Return where the points are drawn, in the units of the axes.

    Outliers of y lie on the edge. Costs that would hide each other lie side by side.
    """
    low, high = axes.get_ylim()
    places: dict[Point, tuple[float, float]] = {}
    marks: list[tuple[float, float]] = []
    for point in sorted(chart.points, key=lambda p: (p.x, p.y)):
        x, y = chart.scaled_x(point), min(max(100 * point.y, low), high)
        left, height = axes.transData.transform((x, y))
        shifts = () if chart.percent_x else SHIFTS
        free = (
            s for s in shifts if all(hypot(left + s - a, height - b) >= BESIDE for a, b in marks)
        )
        shift = next(free, 0.0)
        marks.append((left + shift, height))
        moved = axes.transData.inverted().transform(marks[-1])[0] if shift else x
        places[point] = float(moved), y
    return {point: places[point] for point in chart.points}


def add_lines(axes: "Axes", chart: Scatter) -> None:
    """Draw the level, the points where both numbers are equal, and the front."""
    if chart.level is not None:
        axes.axhline(100 * chart.level, **GUIDE)
    if chart.diagonal:
        low = max(axes.get_xlim()[0], axes.get_ylim()[0])
        high = min(axes.get_xlim()[1], axes.get_ylim()[1])
        if low < high:
            axes.plot([low, high], [low, high], **GUIDE)
    places = [(chart.scaled_x(point), 100 * point.y) for point in chart.best]
    if places:  # level to the next point, then up
        steps = [corner for a, b in pairwise(places) for corner in ((b[0], a[1]), b)]
        corners = [places[0], *steps, (axes.get_xlim()[1], places[-1][1])]
        axes.plot(*zip(*corners, strict=True), color=GAIN, linewidth=1.5)


class LabelBox(NamedTuple):
    """A rectangle in pixels; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: "LabelBox") -> bool:
        """Return whether two boxes overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top


@dataclass(frozen=True)
class LabelPlace:
    """Possible place of a label: offset from its point, and the area of label and line."""

    offset: tuple[float, float]
    anchor: str
    label: LabelBox
    line: tuple[LabelBox, ...]

    def is_free(self, frame: LabelBox, obstacles: Sequence[LabelBox]) -> bool:
        """Return whether the label lies inside the frame and, with its line, on no obstacle."""
        inside = self.label.left >= frame.left and self.label.right <= frame.right
        inside = inside and self.label.bottom >= frame.bottom and self.label.top <= frame.top
        return inside and not any(
            box.meets(old) for box in (self.label, *self.line) for old in obstacles
        )


def add_labels(axes: "Axes", chart: Scatter, at: Mapping[Point, tuple[float, float]]) -> None:
    """Label the points, those of the front first, where a label hides no point or label.

    A place that hides no line either is preferred; a point without any has its name in its hint.
    """
    to_pixels = axes.transData.transform
    taken = [around(*to_pixels(place)) for place in at.values()]
    lines = line_boxes(axes)
    x0, y0, x1, y1 = axes.bbox.extents
    frame = LabelBox(x0, y0, x1 + RIGHT - 2, y1 + FONT_SIZE)
    for point in dict.fromkeys([*chart.best, *chart.points]):
        is_clipped = at[point][1] != 100 * point.y
        value = f" {plotting.percent(point.y)}".replace("-", "−") if is_clipped else ""
        text = fit_text(point.label, LABEL_SHARE * axes.bbox.width) + value
        x, y = to_pixels(at[point])
        places = list(places_around(x, y, plotting.text_width(text)))
        obstacles = ([*taken, *lines], taken)
        place = next((p for old in obstacles for p in places if p.is_free(frame, old)), None)
        if place is None:
            continue
        taken += [place.label, *place.line]
        arrow = {"arrowstyle": "-", "color": INK, "alpha": 0.4, "shrinkA": 1, "shrinkB": 4}
        axes.annotate(
            text,
            at[point],
            place.offset,
            textcoords="offset points",
            ha=place.anchor,
            va="center",
            arrowprops=arrow if place.line else None,
        )


def around(x: float, y: float, half: float = MARK) -> LabelBox:
    """Return a square around a place."""
    return LabelBox(x - half, y - half, x + half, y + half)


def line_boxes(axes: "Axes") -> list[LabelBox]:
    """Return what the lines of the chart cover: intervals, level, diagonal and front."""
    boxes = []
    for line in axes.lines:
        corners = line.get_transform().transform(line.get_xydata())
        for a, b in pairwise(corners):
            steps = 1 if min(abs(a - b)) < 1 else 1 + int(max(abs(a - b)) / 10)
            for k in range(steps):
                ends = [a + (b - a) * part / steps for part in (k, k + 1)]
                (left, right), (bottom, top) = (sorted(pair) for pair in zip(*ends, strict=True))
                boxes.append(LabelBox(left - HAIR, bottom - HAIR, right + HAIR, top + HAIR))
    return boxes


def places_around(x: float, y: float, width: float) -> Iterator[LabelPlace]:
    """Yield the places for a label of this width, nearest first."""
    for distance in DISTANCES:
        for angle in ANGLES:
            dx, dy = cos(radians(angle)), sin(radians(angle))
            upright = abs(dx) < 0.1
            # Straight above and below, the label needs half its height more.
            offset = distance * dx, (distance + upright * FONT_SIZE / 2) * dy
            cx, cy = x + offset[0], y + offset[1]
            left = cx - width / 2 if upright else cx if dx > 0 else cx - width
            label = LabelBox(left - 1, cy - FONT_SIZE / 2, left + width + 1, cy + FONT_SIZE / 2 + 1)
            steps = range(8, int(distance) - 3, 4) if distance > DISTANCES[0] else range(0)
            line = tuple(around(x + k * dx, y + k * dy, 1) for k in steps)
            anchor = "center" if upright else "left" if dx > 0 else "right"
            yield LabelPlace(offset, anchor, label, line)
