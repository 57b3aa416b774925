"""Canonical JSON and its digest: equal values give equal text on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any, *, compact: bool = True) -> str:
    """Return JSON in ASCII with sorted keys. Raise ValueError for NaN and infinity.

    compact: without spaces; with them, as `json.dumps` writes them, for digests of older files.
    """
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(
        value, sort_keys=True, separators=separators, ensure_ascii=True, allow_nan=False
    )


def digest(value: Any, *, compact: bool = True) -> str:
    """Return the sha-256 of the canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value, compact=compact).encode()).hexdigest()
