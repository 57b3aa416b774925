"""Image formats that are read, by content and by suffix, and what makes others readable."""

from collections.abc import Set
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from PIL import Image

FORMATS = (
    "JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF", "AVIF", "JPEG2000", "HEIF",
)  # fmt: skip
"""Formats, recognised by content. Others can start programs, e.g. Ghostscript for EPS."""
NEEDS = {
    ".avif": "pip install --upgrade pillow",
    **dict.fromkeys((".heic", ".heif", ".hif"), "pip install pillow-heif"),
}
"""Commands that add the formats that not every Pillow reads, by usual suffix."""


@cache
def register_plugins() -> None:
    if find_spec("pillow_heif"):
        import_module("pillow_heif").register_heif_opener()
    Image.init()


def readable_formats() -> tuple[str, ...]:
    """Return the formats that this Pillow reads, HEIF where its plug-in is installed."""
    register_plugins()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the formats that can be read, in lower case."""
    formats = readable_formats()
    return tuple(suffix for suffix, name in Image.EXTENSION.items() if name in formats)


def advise_on_suffixes(suffixes: Set[str]) -> str:
    """Return what makes images of these suffixes readable, as the end of a sentence, or ""."""
    unread = sorted(suffixes & NEEDS.keys() - {*readable_suffixes()})
    return "".join(f"; {suffix} needs {NEEDS[suffix]}, or convert them" for suffix in unread)
