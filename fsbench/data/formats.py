"""Image formats that are read, by content and by suffix."""

from functools import cache

from PIL import Image

FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF", "AVIF", "JPEG2000")
"""Formats, recognised by content. Others can start programs, e.g. Ghostscript for EPS."""


@cache
def readable_formats() -> tuple[str, ...]:
    """Return the formats that this Pillow reads."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


@cache
def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the formats that can be read, in lower case."""
    formats = readable_formats()
    return tuple(suffix for suffix, name in Image.EXTENSION.items() if name in formats)
