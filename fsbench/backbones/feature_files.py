"""An array of features on disk: written block by block, resumed after a kill, checked when read.

Layout: <folder>/features.npy, float32 (N, D), and <folder>/meta.json with the sha-256 of the array,
what it is an array of, and the sha-256 of all that as `seal`. It grows in <folder>.partial, where
done.json counts the finished blocks and their rows and has the sha-256 of these, and is renamed
when complete. Nothing waits for the disk, which costs small networks a fiftieth: what a killed
process has written is there, and what a power failure takes is missed by its hash.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from fsbench.core import io
from fsbench.core.canonical import digest
from fsbench.core.progress import SILENT, Reporter

Features = NDArray[np.float32]

ARRAY, META, DONE = "features.npy", "meta.json", "done.json"
MARK_SECONDS = 1.0
"""What a kill may cost."""


@contextmanager
def locked(folder: Path, report: Reporter) -> Iterator[None]:
    """This process alone works on the folder; another one is waited for, and said so."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(folder.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        report.log(f"another process extracts into {folder}: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def read(folder: Path, shape: tuple[int, int], report: Reporter) -> Features | None:
    """The finished array (copy on write), or None; a damaged one is removed, and said so."""
    if not folder.is_dir():
        return None
    try:
        meta = json.loads((folder / META).read_text(encoding="utf8"))
        array: Features = np.load(folder / ARRAY, mmap_mode="c")
        sealed = meta.pop("seal", None) == seal(meta)
        if sealed and array.shape == shape and meta["sha256"] == sha256(array):
            return array
    except (OSError, ValueError, AttributeError, LookupError, TypeError):
        pass
    report.log(f"{folder} is damaged: extracting its features again")
    shutil.rmtree(folder)
    return None


def sha256(array: Features) -> str:
    """Of the numbers, row by row."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def seal(meta: Mapping[str, Any]) -> str:
    """sha-256 of a meta.json, but for the seal itself."""
    return digest(meta, compact=False)


class Journal:
    """The growing array of one folder. done: blocks that earlier runs finished."""

    def __init__(self, folder: Path, shape: tuple[int, int], report: Reporter = SILENT) -> None:
        self.folder, self.partial = folder, folder.with_name(folder.name + ".partial")
        self.done, self.rows, self.hash = 0, 0, hashlib.sha256()
        self.array = self._resume(shape, report)
        self.marked = time.monotonic()

    def _resume(self, shape: tuple[int, int], report: Reporter) -> np.memmap:
        """The array with its first rows, or a new one; what is damaged is left out, and said so."""
        try:
            marked = json.loads((self.partial / DONE).read_text())
            array: np.memmap = np.load(self.partial / ARRAY, mmap_mode="r+")
            done, rows = int(marked["done"]), int(marked["rows"])
            found = hashlib.sha256(np.ascontiguousarray(array[:rows]).data)
            if array.shape == shape and found.hexdigest() == marked["sha256"]:
                self.done, self.rows, self.hash = done, rows, found
                return array
        except FileNotFoundError:  # killed before the first mark
            return self._start(shape)
        except (OSError, ValueError, LookupError, TypeError):
            pass
        report.log(f"{self.partial} is damaged: extracting its features from the start")
        return self._start(shape)

    def _start(self, shape: tuple[int, int]) -> np.memmap:
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(parents=True)
        return io.create_array(self.partial / ARRAY, np.float32, shape)

    def write(self, start: int, rows: Features) -> None:
        """Store the next block, whose first row is `start`; at times, mark what is stored."""
        data = np.ascontiguousarray(rows, np.float32).data
        with (self.partial / ARRAY).open("r+b") as file:  # cheaper than a mapped page's first use
            file.seek(self.array.offset + start * self.array.strides[0])
            file.write(data)
        self.hash.update(data)
        self.done, self.rows = self.done + 1, start + len(rows)
        if time.monotonic() - self.marked >= MARK_SECONDS:
            self.mark()

    def mark(self) -> None:
        """Say which blocks are there."""
        self.marked = time.monotonic()
        beside = self.partial / f"{DONE}.new"
        mark = {"done": self.done, "rows": self.rows, "sha256": self.hash.hexdigest()}
        beside.write_text(json.dumps(mark))
        beside.replace(self.partial / DONE)

    def finish(self, about: Mapping[str, Any]) -> None:
        """Make the complete array visible, with `about` in its meta.json."""
        meta = {**about, "shape": self.array.shape, "sha256": self.hash.hexdigest()}
        text = json.dumps({**meta, "seal": seal(meta)}, indent=1)
        (self.partial / META).write_text(text, encoding="utf8")
        (self.partial / DONE).unlink(missing_ok=True)
        self.partial.replace(self.folder)
