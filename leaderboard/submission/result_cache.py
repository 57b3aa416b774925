"""Cache of the verified results of a board: one file per board, one row per result.

The content of the file (cache_file.py) is

    <8 bytes: size of the text><text: a line of SharedParts, a line per CacheRow><outcomes>

A row is valid for the path of the result, the sha-256 of its two files and the version of the code
that verified it. It holds the result and the outcomes that ranking needs, so a second reading opens
one file. While size and times of both files stay the same, they are not hashed again. A file that
is damaged or of another version is ignored: its results are verified again.

Many results that are not cached are verified by several processes, which hand them over in the same
format.
"""

import hashlib
import io
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import create_model

from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, DatasetRecord, Provenance, Result
from fsbench.core.specs import Frozen, Spec
from fsbench.core.tasks import ColumnId
from fsbench.results.verification import Loaded, list_results, read_verified, select_verified
from leaderboard.ranking.outcomes import (
    Outcomes,
    VerifiedResult,
    count_up,
    extract_outcomes,
    has_second_rule,
    identify_draws,
)
from leaderboard.submission.cache_file import (
    OtherKey,
    UnusableCache,
    compute_code_version,
    read_cache,
    write_cache,
)

FOLDER = "board-results"
"""Name below the cache folder, which `fsbench cache` lists."""
RECORDS = ".parquet"
SHARED = ("backbone", "dataset", "spec")
"""Parts of a Result that many results of a board have in common; equal ones are stored once."""
OF_ONE_RESULT = {"started", "seconds"}
"""Fields of a Provenance that are of one result; the others are stored once as well."""
BATCH = 64
"""Results that a process verifies and hands over at once."""
BLOCK = 2**16
"""Bytes that are hashed at once; most files are smaller."""
MANY = 8 * BATCH
"""Fewest results that several processes verify."""
FIELDS: dict[type[Frozen], set[str]] = {
    model: set(model.model_fields) for model in (Result, Provenance)
}
"""One set for all records of a model, which would take as much memory as their outcomes."""


M = TypeVar("M", Result, Provenance)


def select_fields(model: type[Frozen], names: Iterable[str]) -> dict[str, Any]:
    """Return some fields of a model as `create_model` takes them."""
    return {
        name: (field.annotation, field)
        for name, field in model.model_fields.items()
        if name in names
    }


OtherFields = create_model(
    "OtherFields",
    __base__=Frozen,
    **select_fields(Result, FIELDS[Result] - {*SHARED, "provenance"}),
)
"""The fields of a Result that are not SHARED, but for its provenance."""
Origin = create_model(
    "Origin", __base__=Frozen, **select_fields(Provenance, FIELDS[Provenance] - OF_ONE_RESULT)
)
"""Fields of a Provenance that many results have in common."""


class CacheRow(Frozen):
    """One verified result on disk.

    name: path relative to the board; stamps: size, mtime and ctime (ns) of the JSON file and of the
    Parquet file; key: sha-256 of both; shared: place of each SHARED part and of the origin;
    started, seconds: of its provenance; fields: all others; numbers, right, held_out: bytes of
    these parts of its Outcomes, which follow those of the row before; numbers is 0 for 0..n-1;
    held_out is `right` by a probe's second rule, 0 without.
    """

    name: str
    stamps: tuple[int, ...]
    key: str
    shared: tuple[int, int, int, int]
    started: str
    seconds: float
    fields: OtherFields
    numbers: int
    right: int
    held_out: int
    out_of: int


class SharedParts(Frozen):
    """The SHARED parts of all results, each once."""

    backbone: tuple[BackboneFacts, ...]
    dataset: tuple[DatasetRecord, ...]
    spec: tuple[Spec, ...]
    origin: tuple[Origin, ...]


@dataclass(frozen=True)
class CachedResult:
    """A verified result with the stamps and the key of its CacheRow."""

    stamps: tuple[int, ...]
    key: str
    verified: VerifiedResult


class ResultCache:
    """Verified results of a board folder; without a cache folder nothing is stored.

    previous: results read from the cache file, by name; fresh: results that other processes
    verified; current: results read or verified since; listed: folder -> its result files.
    """

    def __init__(self, board: Path, folder: Path | None = None, report: Reporter = SILENT) -> None:
        self.board, self.report = board, report
        self.root = f"{board.as_posix()}/"
        name = hashlib.sha256(str(board.resolve()).encode()).hexdigest()[:16]
        self.file = folder / FOLDER / name if folder else None
        self.parts: dict[tuple[str, str], Any] = {}
        self.described: dict[tuple[int, int], tuple[str, ColumnId]] = {}
        self.previous = self.read()
        self.fresh: dict[str, CachedResult] = {}
        self.current: dict[str, CachedResult] = {}
        self.listed: dict[Path, list[str]] = {}

    def read_results(self, folder: Path) -> tuple[VerifiedResult, ...]:
        """Return all results below a folder. Raises ValidationFailed for a wrong one."""
        return tuple(self.read_result(file) for file in self.list_results(folder))

    def list_results(self, folder: Path) -> list[str]:
        """Return the result files below a folder, as they were when they were first listed."""
        if folder not in self.listed:
            self.listed[folder] = list_results(folder)
        return self.listed[folder]

    def name_result(self, file: str) -> str:
        """Return the path of a result file relative to the board."""
        return file.replace(os.sep, "/").removeprefix(self.root)

    def read_result(self, file: str) -> VerifiedResult:
        """Return one result, from the cache if its files are unchanged."""
        if self.file is None:
            return self.compact(read_verified(Path(file)))
        name, stamps = self.name_result(file), read_stamps(file)
        cached = self.fresh.get(name) or self.previous.get(name)
        if cached is None or cached.stamps != stamps:
            path = Path(file)
            key = hash_files(path)
            if cached is not None and cached.key == key:
                cached = replace(cached, stamps=stamps)
            else:
                cached = CachedResult(stamps, key, self.compact(read_verified(path)))
            if not stamps or read_stamps(file) != stamps:
                return cached.verified  # somebody is writing the files: do not store the result
        self.current[name] = cached
        return cached.verified

    def compact(self, loaded: Loaded) -> VerifiedResult:
        """Return a verified result with what ranking needs of its records."""
        held_out = extract_outcomes(loaded, True) if has_second_rule(loaded.result) else None
        shared = {name: self.share(name, getattr(loaded.result, name)) for name in SHARED}
        result = loaded.result.model_copy(update=shared)
        return VerifiedResult(loaded.path, result, extract_outcomes(loaded), held_out)

    def share(self, name: str, part: Frozen) -> Any:
        """Return one object for all equal parts of this name."""
        return self.parts.setdefault((name, part.model_dump_json()), part)

    def describe(self, result: Result) -> tuple[str, ColumnId]:
        """Return draws and column, one object of each for all results of a data set and a spec."""
        places = id(result.dataset), id(result.spec)  # of shared parts, which stay
        if places not in self.described:
            self.described[places] = identify_draws(result), result.column
        return self.described[places]

    def verify_missing(self, folders: Iterable[Path]) -> None:
        """Verify what is not cached below these folders by several processes, if it is much.

        Wrong results are left to `read_result`, which says what is wrong.
        """
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        workers = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
        if self.file is None or workers == 1:
            return
        listed: list[str] = []
        for folder in folders:
            with suppress(UsageError):
                listed += self.list_results(folder)
        missing = [Path(text) for text in listed if self.name_result(text) not in self.previous]
        if len(missing) < MANY:
            return
        batches = [missing[i : i + BATCH] for i in range(0, len(missing), BATCH)]
        pool = ProcessPoolExecutor(workers, get_context("fork"), ignore_interrupts)
        try:
            with self.report.task("verify", len(missing), "results") as advance:
                verified = pool.map(partial(verify_batch, self.board), batches)
                for batch, content in zip(batches, verified, strict=True):
                    self.fresh |= self.decode(content)
                    advance(len(batch))
        finally:
            pool.shutdown(cancel_futures=True)

    def read(self) -> dict[str, CachedResult]:
        """Read the cache file; log why if it cannot be used."""
        if self.file is None:
            return {}
        try:
            content = read_cache(self.file, compute_code_version())
            return self.decode(content) if content is not None else {}
        except OtherKey:
            reason = "was written by another version of fsbench"
        except UnusableCache as error:
            reason = str(error)
        except ValueError:
            reason = "is not a result cache"
        self.report.log(f"{self.file} {reason}: every result is verified again")
        return {}

    def decode(self, content: bytes) -> dict[str, CachedResult]:
        """Return the results of a cache file, by name. Raises ValueError."""
        start = 8 + int.from_bytes(content[:8])
        lines, outcomes = io.BytesIO(content), io.BytesIO(content)  # of the same bytes
        lines.seek(8)
        outcomes.seek(start)
        shared = SharedParts.model_validate_json(lines.readline())
        parts = [[self.share(name, part) for part in list_] for name, list_ in shared]
        results = {}
        while lines.tell() < start:
            row = CacheRow.model_validate_json(lines.readline())
            results[row.name] = self.parse(row, parts, outcomes)
        return results

    def parse(
        self, row: CacheRow, parts: Sequence[Sequence[Any]], outcomes: io.BytesIO
    ) -> CachedResult:
        """Return the result of a row, whose outcomes come next."""
        *shared, origin = (part[i] for part, i in zip(parts, row.shared, strict=True))
        of_one = {"started": row.started, "seconds": row.seconds}
        provenance = restore(Provenance, vars(origin) | of_one)
        others = dict(zip(SHARED, shared, strict=True), provenance=provenance)
        result = restore(Result, vars(row.fields) | others)
        draws, vars(result)["column"] = self.describe(result)
        numbers, right, second = map(outcomes.read, (row.numbers, row.right, row.held_out))
        counts = np.frombuffer(right, np.min_scalar_type(row.out_of))
        index = np.frombuffer(numbers, np.int64) if numbers else count_up(counts.size)
        whole = Outcomes(index, counts, draws, row.out_of)
        held_out = (
            replace(whole, right=np.frombuffer(second, whole.right.dtype)) if second else None
        )
        verified = VerifiedResult(self.root + row.name, result, whole, held_out)
        return CachedResult(row.stamps, row.key, verified)

    def write(self, results: Mapping[str, CachedResult]) -> None:
        """Write the cache file if it changed; log an error, e.g. a full disk."""
        if self.file is None or results == self.previous:
            return
        try:
            write_cache(self.file, compute_code_version(), *encode(results))
        except OSError as error:
            self.report.log(f"results are not cached: {self.file}: {error.strerror}")


def restore(model: type[M], values: dict[str, Any]) -> M:
    """Return a model with these values of all its fields, which were verified before.

    As pickle does it: `model_construct` looks at every field for a default.
    """
    restored = model.__new__(model)
    restored.__setstate__(
        {
            "__dict__": values,
            "__pydantic_fields_set__": FIELDS[model],
            "__pydantic_extra__": None,
            "__pydantic_private__": None,
        }
    )
    return restored


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


def encode(results: Mapping[str, CachedResult]) -> list[bytes | memoryview]:
    """Return the content of a cache file of these results, in parts."""
    places: dict[str, dict[int, int]] = {name: {} for name in SHARED}
    parts: dict[str, list[str]] = {name: [] for name in SHARED}
    origins: dict[str, int] = {}
    rows, outcomes = io.BytesIO(), io.BytesIO()
    for name, cached in sorted(results.items()):
        verified = cached.verified
        shared = []
        for kind in SHARED:
            part = getattr(verified.result, kind)
            if id(part) not in places[kind]:
                places[kind][id(part)] = len(parts[kind])
                parts[kind].append(part.model_dump_json())
            shared.append(places[kind][id(part)])
        provenance = verified.result.provenance
        origin = provenance.model_dump_json(exclude=OF_ONE_RESULT)
        shared.append(origins.setdefault(origin, len(origins)))
        whole, held_out = verified.outcomes, verified.held_out
        is_plain = whole.index is count_up(whole.index.size)
        row = {
            "name": name,
            "stamps": cached.stamps,
            "key": cached.key,
            "shared": shared,
            "started": provenance.started,
            "seconds": provenance.seconds,
            "numbers": 0 if is_plain else outcomes.write(whole.index.tobytes()),
            "right": outcomes.write(whole.right.tobytes()),
            "held_out": outcomes.write(held_out.right.tobytes()) if held_out else 0,
            "out_of": whole.out_of,
        }
        fields = verified.result.model_dump_json(exclude={*SHARED, "provenance"})
        rows.write(f'{json.dumps(row)[:-1]},"fields":{fields}}}\n'.encode())
    parts["origin"] = list(origins)
    shared_parts = ",".join(f'"{name}":[{",".join(texts)}]' for name, texts in parts.items())
    head = f"{{{shared_parts}}}\n".encode()
    size = (len(head) + rows.tell()).to_bytes(8)
    return [size, head, rows.getbuffer(), outcomes.getbuffer()]


def ignore_interrupts() -> None:
    """Leave signals to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def verify_batch(board: Path, paths: Sequence[Path]) -> bytes:
    """Return the right ones of these results as the content of a cache file."""
    results = ResultCache(board)
    before = {path: (read_stamps(str(path)), hash_files(path)) for path in paths}
    verified = {}
    for loaded in select_verified(paths):
        path, (stamps, key) = loaded.path, before[loaded.path]
        if stamps and read_stamps(str(path)) == stamps:
            cached = CachedResult(stamps, key, results.compact(loaded))
            verified[results.name_result(str(path))] = cached
    return b"".join(encode(verified))


def read_stamps(file: str) -> tuple[int, ...]:
    """Return size, mtime and ctime of a result and of its records; () if one is missing."""
    files = file, file.removesuffix(".json") + RECORDS
    try:
        stats = [os.stat(name) for name in files]  # noqa: PTH116 - many; a Path takes as long again
    except OSError:
        return ()
    return tuple(n for stat in stats for n in (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


def hash_files(path: Path) -> str:
    """Return the sha-256 of a result and of its records, in hexadecimal; "" if unreadable."""
    try:
        return "".join(hash_file(file) for file in (path, path.with_suffix(RECORDS)))
    except OSError:
        return ""


def hash_file(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb", buffering=0) as stream:
        while block := stream.read(BLOCK):  # file_digest clears a larger buffer for each file
            digest.update(block)
    return digest.hexdigest()
