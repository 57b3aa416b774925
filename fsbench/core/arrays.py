"""Arrays that take long to compute: cached in folders, resumed after a kill, checked by hash.

Layout: <folder>/array.npy, and <folder>/meta.json with the number of finished rows, their sha-256
and what they are about. The array grows in <folder>.partial, which is renamed when complete. Who
computes it holds <folder>.lock. Nothing is flushed: after a power failure the hash reveals it.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import DTypeLike, NDArray

from fsbench.core.errors import FsbenchError
from fsbench.core.io import read_sealed, write_sealed
from fsbench.core.progress import Reporter

ARRAY, META = "array.npy", "meta.json"
MARK_SECONDS = 1.0
"""Seconds between marks: the work that a killed run may lose."""


class CachedArray(NamedTuple):
    """An array in memory-mapped form, its finished rows and the sha-256 over these."""

    values: np.memmap
    rows: int
    hash: "hashlib._Hash"


def read_array(
    folder: Path, shape: tuple[int, ...], mode: Literal["c", "r+"] = "c"
) -> CachedArray | None:
    """Map the array of a folder, copied on write by default; None if it is missing or damaged."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        meta = read_sealed(folder / META)
        array = np.load(folder / ARRAY, mmap_mode=mode)
        done = hashlib.sha256(np.ascontiguousarray(array[: meta["rows"]]).data)
        if array.shape == shape and done.hexdigest() == meta["sha256"]:
            return CachedArray(array, meta["rows"], done)
    return None


def load_array(
    folder: Path, shape: tuple[int, ...], compute: Callable[[], None], report: Reporter
) -> CachedArray:
    """Return the array of a folder, which `compute` writes if it is missing or damaged."""
    # A finished array appears by rename, so it needs no lock, which a read-only cache refuses.
    if cached := read_array(folder, shape):
        return cached
    with lock_folder(folder, report):
        if cached := read_array(folder, shape):
            return cached
        if folder.is_dir():
            report.log(f"{folder} is damaged: computing it again")
            shutil.rmtree(folder)
        compute()
        if cached := read_array(folder, shape):
            return cached
    raise FsbenchError(f"{folder} differs from what was written", fix="check the disk")


@contextmanager
def lock_folder(folder: Path, report: Reporter) -> Iterator[None]:
    """Lock the folder for this process; wait for another one and report that."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(folder.name + ".lock"))
    try:
        acquired = lock.acquire(timeout=0)
    except Timeout:
        report.log(f"another process computes {folder}: waiting for it")
        acquired = lock.acquire()
    with acquired:
        yield


class ArrayWriter:
    """Writer of the growing array of a folder; rows: those that are finished, also by others."""

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.folder, self.partial = folder, folder.with_name(folder.name + ".partial")
        self.rows, self.hash, self.marked = 0, hashlib.sha256(), time.monotonic()
        if earlier := read_array(self.partial, shape, "r+"):
            self.array, self.rows, self.hash = earlier
            return
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(parents=True)
        path = self.partial / ARRAY
        self.array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)

    def write(self, rows: NDArray[Any]) -> None:
        """Append rows, and mark progress once a second. Raise OSError for a full disk."""
        data = np.ascontiguousarray(rows, self.array.dtype).data
        with (self.partial / ARRAY).open("r+b") as file:  # cheaper than a mapped page's first use
            file.seek(self.array.offset + self.rows * self.array.strides[0])
            file.write(data)
        self.hash.update(data)
        self.rows += len(rows)
        if time.monotonic() - self.marked >= MARK_SECONDS:
            self.mark()

    def mark(self, about: Mapping[str, Any] | None = None) -> None:
        """Write down what is finished, so that it survives a kill, and what it is about."""
        self.marked = time.monotonic()
        meta = {**(about or {}), "rows": self.rows, "sha256": self.hash.hexdigest()}
        write_sealed(self.partial / META, meta)

    def finish(self, about: Mapping[str, Any]) -> None:
        """Publish the complete array, with `about` in its meta.json."""
        self.mark(about)
        self.partial.replace(self.folder)
