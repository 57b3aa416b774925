"""Image formats that are read, by content and by suffix, and what makes the others readable."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from PIL import Image, features

FORMATS = (
    "JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF", "AVIF", "JPEG2000", "HEIF",
)  # fmt: skip
"""Formats, recognised by content. Others can start programs, e.g. Ghostscript for EPS."""
CODECS = {
    "AVIF": ("avif", {".avif"}, "pip install --upgrade pillow"),
    "JPEG2000": ("jpg_2000", {".jp2", ".j2k", ".jpx"}, "pip install --upgrade pillow"),
    "HEIF": ("", {".heic", ".heif", ".hif"}, "pip install pillow-heif"),
}
"""Formats that not every Pillow reads: feature that tells, usual suffixes, and what adds them."""


@cache
def _register_plugins() -> None:
    if find_spec("pillow_heif"):
        import_module("pillow_heif").register_heif_opener()
    Image.init()


def readable_formats() -> tuple[str, ...]:
    """Return the formats that this Pillow reads, HEIF where its plug-in is installed."""
    _register_plugins()
    needs = {name: feature for name, (feature, *_) in CODECS.items() if feature}
    lacking = [name for name, feature in needs.items() if not features.check(feature)]
    return tuple(name for name in FORMATS if name in Image.OPEN and name not in lacking)


def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the formats that can be read, in lower case."""
    formats = readable_formats()
    return tuple(suffix for suffix, name in Image.EXTENSION.items() if name in formats)


def advise_on_suffixes(suffixes: Iterable[str]) -> str:
    """Return what makes images of these suffixes readable, as the end of a sentence, or ""."""
    unread = [CODECS[name] for name in CODECS.keys() - set(readable_formats())]
    needs = {name: command for _, names, command in unread for name in names & set(suffixes)}
    return "".join(f"; {name} needs {command}, or convert them" for name, command in needs.items())
