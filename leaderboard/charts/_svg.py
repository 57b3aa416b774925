"""An SVG under construction: elements, never pasted strings, so all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import east_asian_width
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

SMALL, NORMAL = 11.0, 12.0
"""Text sizes in CSS pixels; no text is smaller."""
GAIN, LOSS = "var(--chart-gain, #0072B2)", "var(--chart-loss, #D55E00)"
SERIES = tuple(
    f"var(--chart-{i}, {colour})"
    for i, colour in enumerate(
        ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#56B4E9", "#7F7F7F", "#8B5FBF"), 1
    )
)
"""Okabe and Ito's colours without those that are too pale on white or too dark on black."""
DASHES = ("", "6 3", "2 2", "8 3 2 3")
FONT = "var(--chart-font, system-ui, sans-serif)"
# What XML cannot hold, and marks that turn the direction of the text around them.
UNSHOWN = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)
NARROW, WIDE = (
    frozenset("iljtfrI.,:;|!'()[] -/"),
    frozenset("mwMW@%&+=<>~_#") | set("ABCDEGHKNOQRUVX"),
)


class Drawing:
    """An SVG image with a title and a description for those who do not see it."""

    def __init__(self, name: str, title: str, description: str, width: float, height: float):
        self.name = re.sub(r"[^\w-]", "-", name)
        self.root = Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "id": self.name,
                "class": "chart",
                "role": "img",
                "aria-labelledby": f"{self.name}-title {self.name}-desc",
                "width": number(width),
                "height": number(height),
                "viewBox": f"0 0 {number(width)} {number(height)}",
                "style": f"font-family:{FONT};font-size:{number(NORMAL)}px",
            },
        )
        self.add("title", None, title, id=f"{self.name}-title")
        self.add("desc", None, description, id=f"{self.name}-desc")

    def add(
        self, tag: str, parent: Element | None = None, text: str = "", /, **attributes: object
    ) -> Element:
        """A new element; `stroke_width` becomes stroke-width, None is left out, numbers shorten."""
        given = {key.replace("_", "-"): value for key, value in attributes.items()}
        shown = {key: written(value) for key, value in given.items() if value is not None}
        element = SubElement(self.root if parent is None else parent, tag, shown)
        if text:
            element.text = clean(text)
        return element

    def write(
        self, x: float, y: float, text: str, anchor: str = "start", **attributes: object
    ) -> Element:
        """Text with its baseline at y."""
        given: dict[str, object] = {"text_anchor": anchor, "fill": "currentColor"} | attributes
        return self.add("text", None, text, x=x, y=y, **given)

    def hint(self, element: Element, text: str) -> None:
        """What a pointer over the element shows."""
        self.add("title", element, text)

    def svg(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode")


def written(value: object) -> str:
    return number(value) if isinstance(value, float | int) else clean(str(value))


def number(value: float) -> str:
    """Two decimals at most, none that say nothing."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def clean(text: str) -> str:
    """Text on one line without what XML cannot hold."""
    return " ".join(UNSHOWN.sub("\ufffd", text).split())


def extent(text: str, size: float = NORMAL) -> float:
    """Pixels that a line of text takes at most in a sans-serif font, without measuring it."""
    return sum(map(advance, text)) * size


def advance(character: str) -> float:
    if east_asian_width(character) in "WF":
        return 1.05
    if character in NARROW:
        return 0.42
    return 0.86 if character in WIDE else 0.65


def fitted(text: str, room: float, size: float = NORMAL) -> str:
    """The text, cut with an ellipsis where it takes more than `room` pixels."""
    text = clean(text)
    if extent(text, size) <= room:
        return text
    kept = text
    while kept and extent(kept + "…", size) > room:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def widest(texts: Sequence[str], size: float = NORMAL) -> float:
    return max((extent(clean(text), size) for text in texts), default=0.0)


def percent(fraction: float, digits: int = 2) -> str:
    return f"{100 * fraction:.{digits}f}"


def signed(fraction: float, digits: int = 2) -> str:
    """A gap in points, e.g. +1.20 or −0.35."""
    points = round(100 * fraction, digits)
    return f"{points:+.{digits}f}".replace("-", "−") if points else f"{0:.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """e.g. ', 95 % interval 51.20 to 53.00'; nothing where it is unknown."""
    if low is None or high is None:
        return ""
    return f", 95 % interval {percent(low)} to {percent(high)}"
