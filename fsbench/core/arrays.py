"""Arrays that take long to compute: cached in folders, resumed after a kill, checked by hash.

Layout: <folder>/array.npy, and <folder>/meta.json with the number of finished rows, their sha-256
and what they are about. The array grows in <folder>.partial, which is renamed when complete. Who
computes it holds <folder>.lock, and who maps it a shared lock of meta.json. `evict_arrays` deletes
what nobody locks. Nothing is flushed: after a power failure the hash reveals it. A large array is
hashed once: then its file is flushed, and <folder>/checked states size, times and inode of it.
"""

import hashlib
import os
import shutil
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import DTypeLike, NDArray

from fsbench.core.errors import FsbenchError
from fsbench.core.io import read_sealed, write_atomic, write_sealed
from fsbench.core.progress import Reporter

ARRAY, META, CHECKED, LOCK = "array.npy", "meta.json", "checked", ".lock"
LARGE = 2**30
"""Bytes of a file from which on it is hashed at the first use alone, and after a change."""
MARK_SECONDS = 1.0
"""Seconds between marks: the work that a killed run may lose."""


class CachedArray(NamedTuple):
    """An array in memory-mapped form, its finished rows and the sha-256 over these."""

    values: np.memmap
    rows: int
    sha256: str


def read_array(
    folder: Path, shape: tuple[int, ...], mode: Literal["r", "r+"] = "r"
) -> CachedArray | None:
    """Map the array of a folder; None if it is missing, damaged or being evicted.

    No eviction takes the folder as long as the array exists. Raise FsbenchError if the system does
    not map it: read-only it may exceed memory, a private copy (mode "c") may not on Linux.
    """
    absent, damaged = (FileNotFoundError, BlockingIOError), (ValueError, LookupError, TypeError)
    try:
        with suppress(*absent, *damaged), ExitStack() as stack:
            stack.enter_context(use_folder(folder))
            meta = read_sealed(folder / META)
            array = np.lib.format.open_memmap(folder / ARRAY, mode=mode)
            cached = CachedArray(array, meta["rows"], meta["sha256"])
            if array.shape == shape and is_right(folder, cached):
                weakref.finalize(array, stack.pop_all().close)
                return cached
    except OSError as error:
        fix = "check the disk, the rights of the files and the memory that this process may map"
        raise FsbenchError(f"{folder} cannot be read: {error.strerror}", fix=fix) from error
    return None


def is_right(folder: Path, cached: CachedArray) -> bool:
    """Return whether the finished rows have their hash, now or when a large file was checked."""
    checked = folder / CHECKED
    with (folder / ARRAY).open("rb") as file:
        of = os.fstat(file.fileno())
        stamp = f"{cached.sha256} {of.st_size} {of.st_mtime_ns} {of.st_ctime_ns} {of.st_ino}"
        if checked.is_file() and checked.read_text("utf8") == stamp:
            return True
        rows = np.ascontiguousarray(cached.values[: cached.rows])
        right = hashlib.sha256(rows.data).hexdigest() == cached.sha256
        if right and of.st_size >= LARGE:
            with suppress(OSError):  # a cache that is only read
                os.fsync(file.fileno())  # else a power failure may take bytes and leave the rest
                write_atomic(checked, stamp.encode())
    return right


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
def use_folder(folder: Path, *, to_evict: bool = False) -> Iterator[None]:
    """Mark a folder as used now, and keep evictions away; or, `to_evict`, keep users away.

    Raise OSError if the folder is missing or kept from this use.
    """
    if os.name == "nt":  # no folder with an open file is renamed there
        yield
        return
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

    with (folder / META).open("r+b" if to_evict else "rb") as file:
        try:
            flock(file, LOCK_NB | (LOCK_EX if to_evict else LOCK_SH))
        except OSError as error:  # some file systems of clusters have no locks: nothing is evicted
            if to_evict or isinstance(error, BlockingIOError):
                raise
        if not to_evict:
            with suppress(OSError):  # a cache that is only read
                os.utime(folder)
        yield


EVICTED = ".evicted"
"""End of the name of a folder that is being deleted; what a killed eviction left goes first."""


def evict_arrays(cache: Path, kinds: tuple[str, ...], size: float) -> None:
    """Delete the arrays in <cache>/<kind>/ that were used longest ago, until `size` bytes are left.

    Arrays that any process computes or uses stay, and their bytes count.
    """
    with suppress(Timeout), FileLock(cache / kinds[0] / f"eviction{LOCK}", timeout=0):
        for left in (path for kind in kinds for path in cache.glob(f"{kind}/*{EVICTED}")):
            shutil.rmtree(left, ignore_errors=True)
        entries = list[tuple[float, int, Path]]()
        for folder in (path for kind in kinds for path in cache.glob(f"{kind}/*") if path.is_dir()):
            with suppress(FileNotFoundError):  # it has just been completed
                n_bytes = sum(file.stat().st_size for file in folder.iterdir())
                entries.append((folder.stat().st_mtime, n_bytes, folder))
        excess = sum(n_bytes for _, n_bytes, _ in entries) - size
        for _, n_bytes, folder in sorted(entries):
            if excess > 0 and evict_array(folder):
                excess -= n_bytes


def evict_array(folder: Path) -> bool:
    """Delete an array and return True, unless a process computes or uses it."""
    lock = FileLock(folder.with_name(f"{folder.name.removesuffix('.partial')}{LOCK}"), timeout=0)
    evicted = folder.with_name(f"{folder.name}{EVICTED}")
    try:
        with lock, use_folder(folder, to_evict=True):
            folder.rename(evicted)
    except (Timeout, OSError):
        return False
    shutil.rmtree(evicted, ignore_errors=True)
    return True


def lock_folder(folder: Path, report: Reporter) -> AbstractContextManager[object]:
    """Lock the folder for this process; wait for another one and report that."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(folder.name + LOCK))
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        report.log(f"another process computes {folder}: waiting for it")
        return lock.acquire()


class ArrayWriter:
    """Writer of the growing array of a folder; rows: those that are finished, also by others."""

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.folder, self.partial = folder, folder.with_name(folder.name + ".partial")
        self.rows, self.hash, self.marked = 0, hashlib.sha256(), time.monotonic()
        if earlier := read_array(self.partial, shape, "r+"):
            self.array, self.rows, _ = earlier
            self.hash.update(np.ascontiguousarray(self.array[: self.rows]).data)
            return
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(parents=True)
        path = self.partial / ARRAY
        self.array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        self.mark()

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
