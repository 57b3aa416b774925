"""Cache of the verified results of a board: one file per board, one row per result.

    fsbench-results <code version> <sha-256 of the rest>
    <Parquet>

A row is valid for the path of the result, the sha-256 of its two files and the version of the code
that verified it. It holds the result and the outcomes that ranking needs, so a second reading opens
one file. While size and times of both files stay the same, they are not hashed again. A file that
is damaged or of another version is ignored: its results are verified again. The digest protects
against damage, not against the owner of the cache folder, who can change the code as well: never
use a cache file of another user.
"""

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pydantic

from fsbench.core.io import replacing
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.results.verification import read_verified, result_files
from leaderboard.ranking.outcomes import (
    Outcomes,
    VerifiedResult,
    count_up,
    extract_outcomes,
    has_second_rule,
    identify_draws,
)

FOLDER = "board-results"
"""Name below the cache folder, which `fsbench cache` lists."""
MAGIC = b"fsbench-results"
GROUP = 1024
"""Rows per Parquet row group, which bounds the memory for reading and writing."""
SHARED = ("backbone", "dataset", "spec")
"""Parts of a Result that many results of a board have in common; equal ones are stored once."""
PACKAGES = ("fsbench.core", "fsbench.data", "fsbench.results", "leaderboard", "protocols")
"""Packages that read and check results; the files of the protocols declare valid settings."""


class CacheRow(NamedTuple):
    """One verified result on disk.

    name: path relative to the board; stamps: size, mtime and ctime (ns) of the JSON file and of the
    Parquet file; key: sha-256 of both; result: as JSON; numbers, right, out_of: its Outcomes, as
    bytes; numbers is empty for 0..n-1; held_out: `right` by a probe's second rule, empty without.
    """

    name: str
    stamps: tuple[int, ...]
    key: bytes
    result: bytes
    numbers: bytes
    right: bytes
    held_out: bytes
    out_of: int


@dataclass(frozen=True)
class CachedResult:
    """A verified result with the stamps and the key of its CacheRow."""

    stamps: tuple[int, ...]
    key: bytes
    verified: VerifiedResult


class UnusableCache(Exception):
    """Why a cache file cannot be used."""


class ResultCache:
    """Verified results of a board folder; without a cache folder nothing is stored.

    previous: results read from the cache file, by name; current: results read or verified since.
    """

    def __init__(self, board: Path, folder: Path | None = None, report: Reporter = SILENT) -> None:
        self.board, self.report = board, report
        name = hashlib.sha256(str(board.resolve()).encode()).hexdigest()[:16]
        self.file = folder / FOLDER / name if folder else None
        self.parts: dict[tuple[str, str], Any] = {}
        self.previous = self.read()
        self.current: dict[str, CachedResult] = {}

    def read_results(self, folder: Path) -> tuple[VerifiedResult, ...]:
        """Return all results below a folder. Raises ValidationFailed for a wrong one."""
        return tuple(self.read_result(path) for path in result_files(folder))

    def read_result(self, path: Path) -> VerifiedResult:
        """Return one result, from the cache if its files are unchanged."""
        if self.file is None:
            return self.verify(path)
        name = path.relative_to(self.board).as_posix()
        cached, stamps = self.previous.get(name), read_stamps(path)
        if cached is None or cached.stamps != stamps:
            key = hash_files(path)
            if cached is not None and cached.key == key:
                cached = replace(cached, stamps=stamps)
            else:
                cached = CachedResult(stamps, key, self.verify(path))
            if not stamps or read_stamps(path) != stamps:
                return cached.verified  # somebody is writing the files: do not store the result
        self.current[name] = cached
        return cached.verified

    def verify(self, path: Path) -> VerifiedResult:
        loaded = read_verified(path)
        held_out = extract_outcomes(loaded, True) if has_second_rule(loaded.result) else None
        result = self.share_parts(loaded.result)
        return VerifiedResult(path, result, extract_outcomes(loaded), held_out)

    def share_parts(self, result: Result) -> Result:
        """Return an equal result whose SHARED parts are one object for all equal results."""
        shared = {}
        for name in SHARED:
            part = getattr(result, name)
            shared[name] = self.parts.setdefault((name, part.model_dump_json()), part)
        return result.model_copy(update=shared)

    def read(self) -> dict[str, CachedResult]:
        """Read the cache file; log why if it cannot be used."""
        if self.file is None:
            return {}
        try:
            rows = read_cache(self.file, compute_code_version())
            return {row.name: self.parse(row) for row in rows}
        except (UnusableCache, ValueError) as error:
            reason = error if isinstance(error, UnusableCache) else "is not a result cache"
            self.report.log(f"{self.file} {reason}: every result is verified again")
            return {}

    def parse(self, row: CacheRow) -> CachedResult:
        result = self.share_parts(Result.model_validate_json(row.result))
        right = np.frombuffer(row.right, np.min_scalar_type(row.out_of))
        index = np.frombuffer(row.numbers, np.int64) if row.numbers else count_up(right.size)
        outcomes = Outcomes(index, right, identify_draws(result), row.out_of)
        second = np.frombuffer(row.held_out, np.uint8)
        held_out = replace(outcomes, right=second) if second.size else None
        verified = VerifiedResult(self.board / row.name, result, outcomes, held_out)
        return CachedResult(tuple(row.stamps), row.key, verified)

    def write(self, results: Mapping[str, CachedResult]) -> None:
        """Write the cache file if it changed; log an error, e.g. a full disk."""
        if self.file is None or results == self.previous:
            return
        rows = (make_row(name, result) for name, result in sorted(results.items()))
        try:
            write_cache(self.file, compute_code_version(), rows)
        except OSError as error:
            self.report.log(f"results are not cached: {self.file}: {error.strerror}")


@contextmanager
def open_cache(
    board: Path, folder: Path | None, report: Reporter = SILENT
) -> Iterator[ResultCache]:
    """Open the cache while the whole board is read, and write it at the end.

    After an error the results that were not reached stay cached.
    """
    results = ResultCache(board, folder, report)
    try:
        yield results
    except BaseException:
        results.write(results.previous | results.current)
        raise
    results.write(results.current)


def make_row(name: str, cached: CachedResult) -> CacheRow:
    result, outcomes = cached.verified.result, cached.verified.outcomes
    held_out = cached.verified.held_out
    is_plain = outcomes.index is count_up(outcomes.index.size)
    return CacheRow(
        name=name,
        stamps=cached.stamps,
        key=cached.key,
        result=result.model_dump_json().encode(),
        numbers=b"" if is_plain else outcomes.index.tobytes(),
        right=outcomes.right.tobytes(),
        held_out=held_out.right.tobytes() if held_out else b"",
        out_of=outcomes.out_of,
    )


def write_cache(path: Path, version: str, rows: Iterable[CacheRow]) -> None:
    """Write a cache file by rename. Raises OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (pa.string(), pa.list_(pa.int64(), 6), *[pa.binary()] * 5, pa.int64())
    schema = pa.schema(list(zip(CacheRow._fields, kinds, strict=True)))
    sink, remaining = pa.BufferOutputStream(), iter(rows)
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        while group := list(islice(remaining, GROUP)):
            columns = [list(column) for column in zip(*group, strict=True)]
            writer.write_table(pa.Table.from_arrays([*map(pa.array, columns)], schema=schema))
    content = memoryview(sink.getvalue())
    head = b" ".join([MAGIC, version.encode(), hashlib.sha256(content).hexdigest().encode()])
    with replacing(path) as temporary, temporary.open("wb") as out:
        out.write(head + b"\n")
        out.write(content)


def read_cache(path: Path, version: str) -> Iterator[CacheRow]:
    """Yield the rows, none if there is no file. Raises UnusableCache before the first row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = read_payload(path, version)
    if content is not None:
        with pq.ParquetFile(pa.BufferReader(pa.py_buffer(content))) as file:
            for group in range(file.metadata.num_row_groups):
                columns = file.read_row_group(group).to_pydict()
                for values in zip(*(columns[name] for name in CacheRow._fields), strict=True):
                    yield CacheRow(*values)


def read_payload(path: Path, version: str) -> memoryview | None:
    """Return the Parquet part, None if there is no file. Raises UnusableCache."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableCache(f"cannot be read ({error.strerror})") from error
    head, newline, _ = content[:200].partition(b"\n")
    words, body = head.split(b" "), memoryview(content)[len(head) + 1 :]
    if not newline or len(words) != 3 or words[0] != MAGIC:
        raise UnusableCache("is damaged")
    if words[1] != version.encode():
        raise UnusableCache("was written by another version of fsbench")
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise UnusableCache("is damaged")
    return body


def read_stamps(path: Path) -> tuple[int, ...]:
    """Return size, mtime and ctime of a result and of its records; () if one is missing."""
    try:
        stats = [file.stat() for file in (path, path.with_suffix(".parquet"))]
    except OSError:
        return ()
    return tuple(n for stat in stats for n in (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


def hash_files(path: Path) -> bytes:
    """Return the sha-256 of a result and of its records, 64 bytes; b"" if one is unreadable."""
    try:
        return b"".join(hash_file(file) for file in (path, path.with_suffix(".parquet")))
    except OSError:
        return b""


def hash_file(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


@cache
def compute_code_version() -> str:
    """Return a digest over everything that reads and checks results, 64 hexadecimal digits.

    It covers the sources of PACKAGES and the versions of Python, NumPy and pydantic: wider than
    needed, so that no change of a check is missed.
    """
    versions = (platform.python_version(), np.__version__, pydantic.VERSION)
    digest = hashlib.sha256(" ".join(versions).encode())
    for file in list_sources():
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"\n{file.parent.name}/{file.name} {content}".encode())
    return digest.hexdigest()


def list_sources() -> list[Path]:
    """Return the modules of PACKAGES and of their subpackages, and fsbench/__init__.py."""
    specs = [find_spec(name) for name in PACKAGES]
    folders = [Path(p) for spec in specs if spec for p in spec.submodule_search_locations or ()]
    modules = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    package = find_spec("fsbench")
    return [Path(package.origin), *modules] if package and package.origin else modules
