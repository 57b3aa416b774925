"""Verdicts on disk: one file a board, one row a verified result.

    fsbench-verdicts <version of the rules> <sha-256 of the rest>
    <Parquet>

A file that is damaged, cut short or of other rules is as good as none: its results are verified
again. The digest guards against damage, not against the owner of the cache folder.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pydantic

import fsbench
from fsbench.core.io import replacing
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.results.reading import result_files, verified
from leaderboard.ranking.outcomes import (
    Outcomes,
    VerifiedResult,
    count_up,
    extract_outcomes,
    identify_draws,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"fsbench-verdicts"
GROUP = 1024
"""Rows that are in memory at once, besides what becomes of them."""


class CacheRow(NamedTuple):
    """One verdict. name: of the result, relative to the board; stamps: size, mtime and ctime (ns)
    of its two files; key: sha-256 of both; result: as JSON; numbers, right, out_of: of its
    Outcomes, as bytes; no numbers for 0..n-1.
    """

    name: str
    stamps: tuple[int, ...]
    key: bytes
    result: bytes
    numbers: bytes
    right: bytes
    out_of: int


class UnusableCache(Exception):
    """Why a file of verdicts is of no use, in words."""


def make_schema() -> pa.Schema:
    import pyarrow as pa

    kinds = (pa.string(), pa.list_(pa.int64(), 6), *[pa.binary()] * 4, pa.int64())
    return pa.schema(list(zip(CacheRow._fields, kinds, strict=True)))


def write_cache(path: Path, rules: str, rows: Iterable[CacheRow]) -> None:
    """By rename. Raises OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, form, left = pa.BufferOutputStream(), make_schema(), iter(rows)
    with pq.ParquetWriter(sink, form, compression="zstd") as writer:
        while group := list(islice(left, GROUP)):
            columns = [list(column) for column in zip(*group, strict=True)]
            writer.write_table(pa.Table.from_arrays([*map(pa.array, columns)], schema=form))
    content = memoryview(sink.getvalue())
    head = b" ".join([MAGIC, rules.encode(), hashlib.sha256(content).hexdigest().encode()])
    with replacing(path) as temporary, temporary.open("wb") as out:
        out.write(head + b"\n")
        out.write(content)


def read_cache(path: Path, rules: str) -> Iterator[CacheRow]:
    """The rows, none where there is no file. Raises Unusable before the first one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = read_payload(path, rules)
    if content is not None:
        with pq.ParquetFile(pa.BufferReader(pa.py_buffer(content))) as file:
            for group in range(file.metadata.num_row_groups):
                columns = file.read_row_group(group).to_pydict()
                for values in zip(*(columns[name] for name in CacheRow._fields), strict=True):
                    yield CacheRow(*values)


def read_payload(path: Path, rules: str) -> memoryview | None:
    """The Parquet part, None where there is no file. Raises Unusable."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableCache(f"cannot be read ({error.strerror})") from error
    head, found, _ = content[:200].partition(b"\n")
    words, body = head.split(b" "), memoryview(content)[len(head) + 1 :]
    if not found or len(words) != 3 or words[0] != MAGIC:
        raise UnusableCache("is damaged")
    if words[1] != rules.encode():
        raise UnusableCache("is of other rules")
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise UnusableCache("is damaged")
    return body


PACKAGES = ("fsbench.core", "fsbench.data", "fsbench.results", "leaderboard", "protocols")


@cache
def code_version() -> str:
    """64 hex digits."""
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
    return [Path(fsbench.__file__), *modules]


FOLDER = "verdicts"
SHARED = ("backbone", "dataset", "spec")
"""Parts of a Result that many results of a board have in common, held once."""


@dataclass(frozen=True)
class CachedResult:
    """A result found right. stamps, key: as in a Row."""

    stamps: tuple[int, ...]
    key: bytes
    cell: VerifiedResult


class ResultCache:
    """What is known of the results of a board folder; without a cache folder nothing is kept."""

    def __init__(self, board: Path, cache: Path | None = None, report: Reporter = SILENT) -> None:
        self.board, self.report = board, report
        name = hashlib.sha256(str(board.resolve()).encode()).hexdigest()[:16]
        self.file = cache / FOLDER / name if cache else None
        self.parts: dict[tuple[str, str], Any] = {}
        self.known = self.read()
        self.found: dict[str, CachedResult] = {}

    def cells(self, folder: Path) -> tuple[VerifiedResult, ...]:
        """All results of one entry, each verified now or before. Raises as `reading.cells`."""
        return tuple(self.cell(path) for path in result_files(folder))

    def cell(self, path: Path) -> VerifiedResult:
        if self.file is None:
            return self.verify(path)
        name = path.relative_to(self.board).as_posix()
        old, now = self.known.get(name), read_stamps(path)
        if old is None or old.stamps != now:
            new = self.decide(path, old, now)
            if not now or read_stamps(path) != now:
                return new.cell  # it is being written; the next reading will tell
            old = new
        self.found[name] = old
        return old.cell

    def decide(self, path: Path, old: CachedResult | None, now: tuple[int, ...]) -> CachedResult:
        """The old verdict if it is of the same content, else a new one."""
        content = hash_files(path)
        if old is not None and old.key == content:
            return replace(old, stamps=now)
        return CachedResult(now, content, self.verify(path))

    def verify(self, path: Path) -> VerifiedResult:
        loaded = verified(path)
        return VerifiedResult(path, self.slim(loaded.result), extract_outcomes(loaded))

    def slim(self, result: Result) -> Result:
        """The same result; what others have in common with it is held once."""
        held = {}
        for name in SHARED:
            part = getattr(result, name)
            held[name] = self.parts.setdefault((name, part.model_dump_json()), part)
        return result.model_copy(update=held)

    def read(self) -> dict[str, CachedResult]:
        if self.file is None:
            return {}
        try:
            rows = read_cache(self.file, code_version())
            return {row.name: self.verdict(row) for row in rows}
        except (UnusableCache, ValueError) as error:
            why = error if isinstance(error, UnusableCache) else "is no file of verdicts"
            self.report.log(f"{self.file} {why}: every result is verified again")
            return {}

    def verdict(self, row: CacheRow) -> CachedResult:
        result = self.slim(Result.model_validate_json(row.result))
        right = np.frombuffer(row.right, np.min_scalar_type(row.out_of))
        index = np.frombuffer(row.numbers, np.int64) if row.numbers else count_up(right.size)
        held = Outcomes(index, right, identify_draws(result), row.out_of)
        return CachedResult(
            tuple(row.stamps), row.key, VerifiedResult(self.board / row.name, result, held)
        )

    def write(self, verdicts: Mapping[str, CachedResult]) -> None:
        """Nothing where nothing changed; a full disk costs the cache, not the reading."""
        if self.file is None or verdicts == self.known:
            return
        rows = (make_row(name, verdict) for name, verdict in sorted(verdicts.items()))
        try:
            write_cache(self.file, code_version(), rows)
        except OSError as error:
            self.report.log(f"verdicts are not kept: {self.file}: {error.strerror}")


def make_row(name: str, verdict: CachedResult) -> CacheRow:
    result, held = verdict.cell.result, verdict.cell.outcomes
    numbers = b"" if held.index is count_up(held.index.size) else held.index.tobytes()
    content = result.model_dump_json().encode()
    return CacheRow(
        name, verdict.stamps, verdict.key, content, numbers, held.right.tobytes(), held.out_of
    )


def result_and_records(path: Path) -> tuple[Path, Path]:
    """A result and its records."""
    return path, path.with_suffix(".parquet")


def read_stamps(path: Path) -> tuple[int, ...]:
    """Size, mtime and ctime of both files; nothing where one is missing."""
    try:
        found = [file.stat() for file in result_and_records(path)]
    except OSError:
        return ()
    return tuple(n for stat in found for n in (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


def hash_files(path: Path) -> bytes:
    """sha-256 of both files, 64 bytes; nothing where one cannot be read, as verifying it says."""
    try:
        return b"".join(hash_file(file) for file in result_and_records(path))
    except OSError:
        return b""


def hash_file(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


@contextmanager
def open_cache(board: Path, cache: Path | None, report: Reporter = SILENT) -> Iterator[ResultCache]:
    """Verdicts of a board while all of it is read; what was found is kept, also after an error."""
    verdicts = ResultCache(board, cache, report)
    try:
        yield verdicts
    except BaseException:
        verdicts.write(verdicts.known | verdicts.found)
        raise
    verdicts.write(verdicts.found)
