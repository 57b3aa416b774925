"""SVG by matplotlib, made fit to stand inside a page.

The page's security policy forbids style sheets and style attributes inside drawings, ids must be
unique in the whole page, colours follow its scheme, and a reader who does not see the drawing gets
its title and description. Bytes that say nothing are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

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
