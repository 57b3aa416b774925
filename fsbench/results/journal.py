"""Finished blocks of an unfinished cell: small Parquet files in a hidden folder, each by rename.

A killed run finds its blocks again; the folder's name holds what the blocks depend on, so blocks of
other weights, other images or another environment are never mixed in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench.records import EpisodeRecords
from fsbench.results import parquet
from fsbench.specs import EpisodeSpec


class Journal:
    """Blocks of one cell below `folder`, called `.<stem>-<key8>`."""

    def __init__(self, folder: Path, stem: str, key: Mapping[str, str], spec: EpisodeSpec) -> None:
        text = json.dumps(dict(key), sort_keys=True)
        self.folder = folder / f".{stem}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        self.spec = spec

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.parquet"))

    def blocks(self) -> set[int]:
        """Numbers of the blocks written."""
        return {int(file.stem) for file in self.files()}

    def write(self, block: int, records: EpisodeRecords) -> None:
        parquet.write(self.folder / f"{block:06d}.parquet", records)

    def read(self) -> dict[Path, EpisodeRecords]:
        """Every block by its file. Raises ValidationFailed naming a damaged one."""
        shape = (self.spec.n_way, self.spec.n_query)
        return {file: parquet.read_episodes(file, *shape) for file in self.files()}

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
