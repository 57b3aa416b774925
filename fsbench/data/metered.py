"""A file that gives out so much and no more: tarfile reads headers of any size that they state."""

from __future__ import annotations

import io
import os
from typing import IO


class Metered(io.RawIOBase):
    """Reads from `file` until `left` bytes are spent; whoever reads on purpose grants more.

    Raises ValueError when the bytes are spent.
    """

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self.file, self.left, self.limit = file, limit, limit

    def read(self, size: int | None = -1) -> bytes:
        wanted = -1 if size is None else size
        self.left -= wanted
        if wanted < 0 or self.left < 0:
            raise ValueError(f"headers of more than {self.limit} bytes")
        return self.file.read(wanted)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()
