"""A file that a publisher offers for download, as data (fetched by fsbench/data/fetch.py)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Archive:
    """A zip or tar file, or a single file that is used as it is.

    known_hash: `md5:...` or `sha256:...`; None where its publisher states none.
    """

    url: str
    known_hash: str | None = None

    @property
    def file(self) -> str:
        """Its file name."""
        return self.url.rpartition("/")[2]
