"""Small files of a run folder."""

from __future__ import annotations

from pathlib import Path


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file; a reader sees the old content or the new one, never a part."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)
