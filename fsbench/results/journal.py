"""Finished blocks of an unfinished cell: small Parquet files in a hidden folder, each by rename.

A killed run finds its blocks again; the folder's name holds what the blocks depend on, so blocks of
other weights, other images or another environment are never mixed in. A file's name ends in the
digest of its records, so a damaged one is known, dropped and computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench.core.canonical import digest
from fsbench.core.errors import ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodeSpec
from fsbench.results import parquet
from fsbench.results.summary import records_digest

EARLIER = "earlier"
"""In place of a block's number: what stood in the result that is being replaced by a larger one."""
DIGITS = 16


class Journal:
    """Blocks of one cell below `folder`, called `.<stem>-<key8>`."""

    def __init__(
        self,
        folder: Path,
        stem: str,
        key: Mapping[str, str],
        spec: EpisodeSpec,
        report: Reporter = SILENT,
    ) -> None:
        self.folder = folder / f".{stem}-{digest(dict(key), compact=False)[:8]}"
        self.spec, self.report = spec, report

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def blocks(self) -> set[int]:
        """Numbers of the blocks written."""
        names = (file.name.partition("-")[0] for file in self.files())
        return {int(name) for name in names if name.isdecimal()}

    def write(self, block: int, records: EpisodeRecords) -> None:
        self.keep(f"{block:06d}", records)

    def keep(self, name: str, records: EpisodeRecords) -> Path:
        file = self.folder / f"{name}-{digits(records)}.parquet"
        parquet.write(file, records)
        return file

    def read(self) -> dict[Path, EpisodeRecords]:
        """Every intact block by its file; a damaged one is removed, and said so."""
        found = {file: self.intact(file) for file in self.files()}
        return {file: records for file, records in found.items() if records is not None}

    def intact(self, file: Path) -> EpisodeRecords | None:
        """The records of a file; None for a damaged one, or one that another process merged."""
        try:
            records = parquet.read_episodes(file, self.spec.n_way, self.spec.n_query)
            if file.stem.endswith(f"-{digits(records)}"):
                return records
        except ValidationFailed:
            pass
        if file.exists():
            self.report.log(f"{file} is damaged: computing its episodes again")
            file.unlink(missing_ok=True)
        return None

    def index(self) -> NDArray[np.int64]:
        """Episode numbers held, in no order."""
        held = [records.index for records in self.read().values()]
        return np.concatenate([np.empty(0, np.int64), *held])

    def remove(self, files: list[Path]) -> None:
        """Drop blocks that went into a result, and the folder with the last one."""
        for file in files:
            file.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def digits(records: EpisodeRecords) -> str:
    """The start of the records' digest."""
    return records_digest(records)[:DIGITS]
