"""The figure style that the board's page, the READMEs, reports and papers share.

A chart is a function that draws a `Drawing` inside `style()`, with the object-oriented interface of
matplotlib and the colours of LIGHT. One CSS pixel is one point: sizes are in pixels. In an SVG
text stays text, and equal input gives equal bytes:

    inline in a page   `drawing.to_svg(name)`: colours are CSS variables, which the page defines
                       (`css_variables`)
    a file             `write_figure(drawing, path)`: literal colours on white, the title on top;
                       SVG, PNG and PDF show the same
"""

import io
import re
import statistics
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import east_asian_width
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from fsbench.core.errors import UsageError
from fsbench.core.io import replacing

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SIZE = 11.0
"""Of all text, in CSS pixels."""
LINE_HEIGHT = 17.0
DASHES = ("-", (0, (6, 3)), (0, (2, 2)), (0, (8, 3, 2, 3)))
PNG_DPI = 144
TITLE_HEIGHT = 28.0
"""Room above the drawing for the title of a file."""
FONTS = "DejaVu Sans, Verdana, Arial, sans-serif"
"""Of the text in an SVG file; the widths are those of the first one."""
FEWEST, FENCE = 8, 3.0
"""Least number of values that can have outliers, and their distance in interquartile ranges."""
LONGEST = 400
"""Characters of a text that may be shown; more never fit."""
TAIL = 5
"""Characters at the end of a text that is cut."""
FORMATS = (".svg", ".png", ".pdf")


@dataclass(frozen=True)
class Theme:
    """Colours of a scheme: background, text and lines, and series."""

    paper: str
    ink: str
    series: tuple[str, ...]


LIGHT = Theme(
    "#ffffff",
    "#1b1c1e",
    ("#0072b2", "#c04d00", "#00805d", "#b05a8c", "#8a6d00", "#3c3f43", "#4a9ad4", "#7a4fb0"),
)
"""The hues of Okabe and Ito, darker where those are too pale on white."""
DARK = Theme(
    "#141517",
    "#e8e8e6",
    ("#56b4e9", "#f0883e", "#3fc79a", "#e39ac4", "#e6c229", "#f2f2f0", "#8f96a0", "#b99aec"),
)
PAPER, INK, SERIES = LIGHT.paper, LIGHT.ink, LIGHT.series
GAIN, LOSS = SERIES[:2]
GUIDE: dict[str, Any] = {"color": INK, "alpha": 0.6, "linewidth": 1, "linestyle": (0, (3, 3))}
"""Look of the dashed lines that mark a value."""
RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "xtick.labelsize": FONT_SIZE,
    "ytick.labelsize": FONT_SIZE,
    "legend.fontsize": FONT_SIZE,
    "legend.frameon": False,
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-4, 6),
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "lines.linewidth": 2,
    "lines.markersize": 7,
    "figure.dpi": 72,
    "svg.fonttype": "none",
    "svg.hashsalt": "fsbench",
    "pdf.fonttype": 42,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw and save in the style of the project, whatever the user's matplotlibrc says.

    Also a decorator. The font that measures text lacks some scripts, which browsers have.
    """
    import matplotlib.style

    with matplotlib.style.context(["default", RC]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


@dataclass(frozen=True)
class Drawing:
    """A figure, its title and description for readers who do not see it, and its hints.

    hints: what a pointer shows over an artist of an SVG, by the artist's gid.
    """

    figure: "Figure"
    title: str
    description: str
    hints: dict[str, str] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        title: str,
        description: str,
        width: float,
        height: float,
        layout: Literal["constrained"] | None = None,
    ) -> "Drawing":
        """Return an empty drawing of this size in pixels."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width / 72, height / 72), layout=layout)
        return cls(figure, title, description)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        width, height = self.figure.get_size_inches()
        return 72 * width, 72 * height

    def add_axes(self, left: float, top: float, right: float, bottom: float) -> "Axes":
        """Add axes between these margins, in pixels."""
        width, height = self.size
        inner = max(width - left - right, 1.0), max(height - top - bottom, 1.0)
        rectangle = left / width, bottom / height, inner[0] / width, inner[1] / height
        return self.figure.add_axes(rectangle)

    def write(self, x: float, y: float, text: str, **options: Any) -> None:
        """Write text with its baseline at (x, y), in pixels from the upper left corner."""
        width, height = self.size
        self.figure.text(x / width, 1 - y / height, text, **options)

    def add_hint(self, artist: "Artist", text: str) -> None:
        """Set what a pointer over an artist shows."""
        gid = f"mark-{len(self.hints)}"
        artist.set_gid(gid)
        self.hints[gid] = text

    def to_svg(self, name: str) -> str:
        """Return an SVG for a page; `name` begins all its ids and is unique in the page."""
        series = {colour: f"var(--chart-{i})" for i, colour in enumerate(SERIES, 1)}
        colours = {INK: "currentColor", PAPER: "var(--chart-paper)", **series}
        return self._describe(name, ink="currentColor", colours=colours).convert(self.save("svg"))

    def to_svg_file(self, name: str) -> str:
        """Return an SVG that needs nothing from its surroundings: no variable, no style sheet."""
        page = self._describe(name, ink=INK, font=FONTS, linked=True)
        return page.convert(self.save("svg", titled=True)) + "\n"

    def _describe(self, name: str, **options: Any) -> "SvgPage":
        hints = {gid: clean_text(text) for gid, text in self.hints.items()}
        title, description = clean_text(self.title), clean_text(self.description)
        return SvgPage(name, title, description, hints, font_size=FONT_SIZE, **options)

    def save(self, file_format: str, titled: bool = False) -> bytes:
        """Return the bytes that matplotlib writes. titled: on white, with the title on top."""
        from matplotlib.transforms import Bbox

        names = {"svg": ("Date", "Creator", "Format", "Type"), "png": ("Software",)}
        metadata = names.get(file_format, ("CreationDate", "Creator", "Producer"))
        options: dict[str, Any] = {"facecolor": PAPER if titled else "none", "dpi": PNG_DPI}
        (width, height), title, buffer = self.size, None, io.BytesIO()
        if titled and not self.figure.get_suptitle():
            y = 1 + 8 / height
            title = self.figure.text(4 / width, y, fit_text(self.title, width - 8), weight="bold")
            title.set_in_layout(False)
            options["bbox_inches"] = Bbox.from_bounds(
                0, 0, width / 72, (height + TITLE_HEIGHT) / 72
            )
        with style():
            self.figure.savefig(
                buffer, format=file_format, metadata=dict.fromkeys(metadata), **options
            )
        if title:
            title.remove()
        return buffer.getvalue()


def write_figure(drawing: Drawing, path: Path) -> None:
    """Write an SVG, PNG or PDF file. Raise UsageError for any other suffix."""
    content = render_figure(drawing, path)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def render_figure(drawing: Drawing, path: Path) -> bytes:
    """Return the bytes of a figure in the format that the suffix of `path` names."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(
            f"{path.name}: no figure format", fix=f"use a suffix of {', '.join(FORMATS)}"
        )
    if suffix == ".svg":
        return drawing.to_svg_file(path.stem).encode()
    return drawing.save(suffix[1:], titled=True)


def css_variables(theme: Theme) -> str:
    """Return CSS that sets the variables of the drawings to the colours of a scheme."""
    series = "".join(f"--chart-{i}:{colour};" for i, colour in enumerate(theme.series, 1))
    return f"--chart-paper:{theme.paper};{series}"


def series_look(i: int) -> dict[str, Any]:
    """Return colour and dashes of the i-th series; colours begin again with other dashes."""
    return {"color": SERIES[i % len(SERIES)], "linestyle": DASHES[i // len(SERIES) % len(DASHES)]}


# Text: what a figure may show, how wide it is, and numbers as people read them.

# What XML cannot contain, and marks that turn the direction of the text around them.
UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)


def clean_text(text: str) -> str:
    """Return text on one line, without characters that XML cannot contain."""
    return " ".join(UNPRINTABLE.sub("\ufffd", text).split())


@lru_cache(4096)
def text_width(text: str) -> float:
    """Return the width of a line in pixels; fonts of browsers are rarely wider."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    # The font has no wide characters; an em dash is as wide as they are.
    line = "".join("—" if east_asian_width(c) in "WF" else c for c in clean_text(text))
    font = FontProperties(family="DejaVu Sans", size=FONT_SIZE)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        width, _, _ = text_to_path.get_text_width_height_descent(line, font, False)
    return float(width)


def widest(texts: Sequence[str]) -> float:
    """Return the width of the widest text, 0 for none."""
    return max(map(text_width, texts), default=0.0)


def fit_text(text: str, room: float) -> str:
    """Return clean text, cut with an ellipsis where it is wider than `room` pixels.

    Names often differ in their last characters: these stay where there is room for more.
    """
    text = clean_text(text)
    if len(text) <= LONGEST and text_width(text) <= room:
        return text
    tail = "…" + (text[-TAIL:] if text_width("m" * TAIL * 2) <= room else "")
    ends = range(min(len(text) - len(tail) + 1, LONGEST))
    end = bisect_right(ends, room, key=lambda n: text_width(text[: n + 1] + tail))
    while end and text_width(text[:end] + tail) > room:  # kerning and marks may narrow a line
        end -= 1
    return text[:end].rstrip() + tail if end else "…"


def percent(fraction: float, digits: int = 2) -> str:
    """Return a fraction in percent, e.g. 51.20."""
    return f"{100 * fraction:.{digits}f}"


def signed(fraction: float, digits: int = 2) -> str:
    """Return a difference in percentage points, e.g. +1.20 or −0.35."""
    points = round(100 * fraction, digits)
    return f"{points:+.{digits}f}".replace("-", "−") if points else f"{0:.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """Return e.g. ', 95 % interval 51.20 to 53.00', '' if unknown."""
    if low is None or high is None:
        return ""
    return f", 95 % interval {percent(low)} to {percent(high)}"


def short_number(value: float) -> str:
    """Return e.g. 500, 20k, 1.5M, 2e+15."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1000 * size:
            return f"{value / size:.3g}{letter}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


# Axes: limits, ticks, rows and legends that several charts share.


def padded(values: Sequence[float], log: bool = False) -> tuple[float, float]:
    """Return limits with 6 % of room on both sides of the values, never an empty range."""
    low, high = min(values, default=1.0), max(values, default=1.0)
    if log:
        room = max(high / low, 2.0) ** 0.06
        return low / room, high * room
    room = 0.06 * (high - low) or 0.5
    return low - room, high + room


def clip_range(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest value that is no outlier by Tukey's outer fences."""
    if len(values) >= FEWEST:
        low, _, high = statistics.quantiles(values, n=4)
        room = FENCE * (high - low)
        values = [v for v in values if low - room <= v <= high + room] if room else values
    return min(values, default=0.0), max(values, default=0.0)


def mark_clipped(axes: "Axes", x: float, y: float, colour: str, side: str) -> "Artist":
    """Draw a triangle at the edge of the axes beyond which a value lies.

    side: "left", "right", "bottom" or "top".
    """
    marker = {"left": "<", "right": ">", "bottom": "v", "top": "^"}[side]
    options: dict[str, Any] = {"color": colour, "markersize": 8, "clip_on": False}
    (mark,) = axes.plot(x, y, marker, **options)
    return mark


def set_log_scale(axes: "Axes", side: str = "x") -> None:
    """Make an axis logarithmic, with short numbers at 1, 2 and 5 times powers of ten.

    Limits must be set before.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{side}scale": "log"})
    axis = axes.xaxis if side == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 200 else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def label_rows(drawing: Drawing, axes: "Axes", labels: Sequence[str], room: float) -> None:
    """Write a label left of each row 0, 1, ..., from the top; its hint is the whole label."""
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(labels)), [fit_text(label, room) for label in labels])
    axes.tick_params(axis="y", length=0, pad=6)
    axes.spines.left.set_visible(False)
    for text, label in zip(axes.get_yticklabels(), labels, strict=True):
        drawing.add_hint(text, label)


def legend_columns(labels: Sequence[str], width: float) -> int:
    """Return how many columns of a legend fit into a width; 48 pixels are its lines and gaps."""
    return max(1, min(len(labels), int(width // (widest(labels) + 48))))


def legend_height(labels: Sequence[str], width: float) -> float:
    """Return the height of a legend in pixels, 0 without labels."""
    return LINE_HEIGHT * -(-len(labels) // legend_columns(labels, width)) if labels else 0.0


def add_legend(
    axes: "Axes", handles: "Sequence[Artist]", labels: Sequence[str], width: float, left: float = 0
) -> None:
    """Write the names of series above axes, from `left` pixels left of them on."""
    from matplotlib.transforms import ScaledTranslation

    if not labels:
        return
    shift = ScaledTranslation(-left / 72, 4 / 72, axes.figure.dpi_scale_trans)
    legend = axes.legend(
        handles,
        [str(i) for i in range(len(labels))],  # matplotlib leaves out a label that begins with "_"
        loc="lower left",
        bbox_to_anchor=(0, 1),
        bbox_transform=axes.transAxes + shift,
        ncols=legend_columns(labels, width),
        borderaxespad=0,
        borderpad=0,
        columnspacing=1.2,
        labelspacing=0.35,
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(fit_text(label, width - 48))


# SVG of a page: no style sheets and style attributes, which its security policy forbids; ids that
# are unique in it; title and description for readers who do not see the drawing.

LINK = "{http://www.w3.org/1999/xlink}href"
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
DROPPED = ("metadata", "style")
DEFAULTS = {
    "font-weight": "400",
    "text-anchor": "start",
    "stroke-linejoin": "round",
    "stroke-linecap": "butt",
    "opacity": "1",
}
"""Values that every element has already, from the root of the drawing or from SVG itself."""
NUMBERS = {"d", "x", "y", "points", "transform", "width", "height"}
NUMBERS |= {"stroke-width", "stroke-dasharray"}
"""Attributes of numbers, which are rounded."""


@dataclass
class SvgPage:
    """Facts of a drawing that the page needs.

    name: begins all ids. hints: id of an element of matplotlib -> text for a pointer over it.
    ink: colour of what states none. colours: those of the drawing -> CSS values that replace them.
    linked: refer by xlink:href, which programs other than browsers expect.
    """

    name: str
    title: str
    description: str
    hints: Mapping[str, str]
    font_size: float
    ink: str
    colours: Mapping[str, str] = field(default_factory=dict)
    font: str = "var(--chart-font, system-ui, sans-serif)"
    linked: bool = False
    _ids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = re.sub(r"[^\w-]", "-", self.name)

    def convert(self, svg: bytes) -> str:
        """Return the SVG of a page from what matplotlib has just written."""
        source = ElementTree.fromstring(svg)
        root = Element("svg", self._root_attributes(source))
        for tag, text in (("title", self.title), ("desc", self.description)):
            SubElement(root, tag, {"id": f"{self.name}-{tag}"}).text = text
        self._copy(source, root)
        return ElementTree.tostring(root, encoding="unicode")

    def _root_attributes(self, source: Element) -> dict[str, str]:
        width, height = (
            _shorten(source.attrib[side].removesuffix("pt")) for side in ("width", "height")
        )
        return {
            "xmlns": "http://www.w3.org/2000/svg",
            "id": self.name,
            "class": "chart",
            "role": "img",
            "aria-labelledby": f"{self.name}-title {self.name}-desc",
            "width": width,
            "height": height,
            "viewBox": f"0 0 {width} {height}",
            "fill": self.ink,
            "stroke-linejoin": "round",
            "font-family": self.font,
            "font-size": f"{self.font_size:g}",
            **({"xmlns:xlink": LINK[1:-5]} if self.linked else {}),
        }

    def _copy(self, source: Element, target: Element) -> None:
        """Copy what is inside `source`; a group without a meaning leaves only its content."""
        for child in source:
            tag = child.tag.rpartition("}")[2]
            attributes = self._attributes(tag, child)
            if tag in DROPPED or (tag == "path" and _is_invisible(attributes)):
                continue
            hint = self.hints.get(child.get("id", ""))
            if tag == "g" and not attributes and hint is None:
                self._copy(child, target)
                continue
            copy = SubElement(target, tag, attributes)
            copy.text = child.text.strip() if child.text and tag == "text" else None
            if hint is not None:
                SubElement(copy, "title").text = hint
            self._copy(child, copy)
            if tag in ("g", "defs") and not len(copy):
                target.remove(copy)

    def _attributes(self, tag: str, element: Element) -> dict[str, str]:
        """Return presentation attributes instead of styles, short numbers, colours of the page."""
        attributes = {}
        for key, value in [*element.attrib.items(), *_declarations(element.get("style", ""))]:
            if key == LINK:
                attributes["xlink:href" if self.linked else "href"] = f"#{self._new_id(value[1:])}"
            elif key == "clip-path":
                attributes[key] = REFERENCE.sub(lambda m: f"url(#{self._new_id(m[1])})", value)
            elif key == "id":
                if tag in ("path", "clipPath"):
                    attributes[key] = self._new_id(value)
            elif key == "font-size":
                if float(value.removesuffix("px")) != self.font_size:
                    attributes[key] = value.removesuffix("px")
            elif key not in ("style", "font-family"):
                shown = _shorten(value) if key in NUMBERS else self.colours.get(value, value)
                default = self.ink if key == "fill" else DEFAULTS.get(key)
                if default != shown and not shown.startswith("rotate(0 "):
                    attributes[key] = shown
        return attributes

    def _new_id(self, old: str) -> str:
        return self._ids.setdefault(old, f"{self.name}-{len(self._ids)}")


def _is_invisible(path: Mapping[str, str]) -> bool:
    bare = path.get("fill") == "none" and "stroke" not in path and "id" not in path
    return bare or not path.get("d")


def _declarations(style: str) -> list[tuple[str, str]]:
    """Return names and values of a style attribute; `font` is split by older matplotlib only."""
    pairs = [part.partition(":")[::2] for part in style.split(";") if ":" in part]
    declarations = [(name.strip(), value.strip()) for name, value in pairs]
    size = next((re.search(r"[\d.]+px", v) for n, v in declarations if n == "font"), None)
    return [(n, v) for n, v in declarations if n != "font"] + (
        [("font-size", size[0])] if size else []
    )


def _shorten(text: str) -> str:
    """Return numbers with two decimals at most, between single spaces."""
    shorter = NUMBER.sub(
        lambda m: f"{round(float(m[0]), 2) + 0.0:.2f}".rstrip("0").rstrip("."), text
    )
    return " ".join(shorter.replace("rotate(-0 ", "rotate(0 ").split())
