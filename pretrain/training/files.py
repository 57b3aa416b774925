"""Files of a run folder, whole or not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place when the block ends well, and goes if it fails."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.replace(path)


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file; a reader sees the old content or the new one, never a part."""
    with replacing(path) as part:
        part.write_bytes(content)
