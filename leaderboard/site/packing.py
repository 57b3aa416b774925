"""Data inside a page: JSON that no text can break out of, and bytes that the browser inflates."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""What ends a script element or a line of one, and how JSON may write it instead."""


def embedded(value: Any) -> str:
    """JSON for a script element; equal data gives equal text. Raises ValueError on NaN."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, written in UNSAFE.items():
        text = text.replace(character, written)
    return text


def packed(data: bytes) -> str:
    """Base64 of the zlib stream, which DecompressionStream('deflate') reads."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def packed_json(value: Any) -> str:
    """Text that nobody reads before it is unpacked."""
    return packed(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf8"))


def unpacked(text: str) -> bytes:
    """The inverse of `packed`."""
    return zlib.decompress(base64.b64decode(text))
