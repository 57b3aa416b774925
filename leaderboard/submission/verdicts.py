"""Every result of a board is verified once for each content, and then known by it.

A verdict is kept under the path of the result, the sha-256 of its two files and the version of the
rules (rulebook.py); it holds only what was found right, with the outcomes that ranking needs, so
that a second reading opens one file. As long as size and times of both files stay the same, they
are not hashed again. The cache folder is its user's own, as trustworthy as the installed code:
never read verdicts of others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.results.reading import result_files, verified
from leaderboard.ranking.outcomes import Cell, Outcomes, draws, first, paired_outcomes
from leaderboard.submission import rulebook, verdict_file
from leaderboard.submission.verdict_file import Row, Unusable

FOLDER = "verdicts"
SHARED = ("backbone", "dataset", "spec")
"""Parts of a Result that many results of a board have in common, held once."""


@dataclass(frozen=True)
class Verdict:
    """A result found right. stamps, key: as in a Row."""

    stamps: tuple[int, ...]
    key: bytes
    cell: Cell


class Verdicts:
    """What is known of the results of a board folder; without a cache folder nothing is kept."""

    def __init__(self, board: Path, cache: Path | None = None, report: Reporter = SILENT) -> None:
        self.board, self.report = board, report
        name = hashlib.sha256(str(board.resolve()).encode()).hexdigest()[:16]
        self.file = cache / FOLDER / name if cache else None
        self.parts: dict[tuple[str, str], Any] = {}
        self.known = self.read()
        self.found: dict[str, Verdict] = {}

    def cells(self, folder: Path) -> tuple[Cell, ...]:
        """All results of one entry, each verified now or before. Raises as `reading.cells`."""
        return tuple(self.cell(path) for path in result_files(folder))

    def cell(self, path: Path) -> Cell:
        if self.file is None:
            return self.verify(path)
        name = path.relative_to(self.board).as_posix()
        old, now = self.known.get(name), stamps(path)
        if old is None or old.stamps != now:
            new = self.decide(path, old, now)
            if not now or stamps(path) != now:
                return new.cell  # it is being written; the next reading will tell
            old = new
        self.found[name] = old
        return old.cell

    def decide(self, path: Path, old: Verdict | None, now: tuple[int, ...]) -> Verdict:
        """The old verdict if it is of the same content, else a new one."""
        content = key(path)
        if old is not None and old.key == content:
            return replace(old, stamps=now)
        return Verdict(now, content, self.verify(path))

    def verify(self, path: Path) -> Cell:
        loaded = verified(path)
        return Cell(path, self.slim(loaded.result), paired_outcomes(loaded))

    def slim(self, result: Result) -> Result:
        """The same result; what others have in common with it is held once."""
        held = {}
        for name in SHARED:
            part = getattr(result, name)
            held[name] = self.parts.setdefault((name, part.model_dump_json()), part)
        return result.model_copy(update=held)

    def read(self) -> dict[str, Verdict]:
        if self.file is None:
            return {}
        try:
            rows = verdict_file.read(self.file, rulebook.version())
            return {row.name: self.verdict(row) for row in rows}
        except (Unusable, ValueError) as error:
            why = error if isinstance(error, Unusable) else "is no file of verdicts"
            self.report.log(f"{self.file} {why}: every result is verified again")
            return {}

    def verdict(self, row: Row) -> Verdict:
        result = self.slim(Result.model_validate_json(row.result))
        right = np.frombuffer(row.right, np.min_scalar_type(row.out_of))
        index = np.frombuffer(row.numbers, np.int64) if row.numbers else first(right.size)
        held = Outcomes(index, right, draws(result), row.out_of)
        return Verdict(tuple(row.stamps), row.key, Cell(self.board / row.name, result, held))

    def write(self, verdicts: Mapping[str, Verdict]) -> None:
        """Nothing where nothing changed; a full disk costs the cache, not the reading."""
        if self.file is None or verdicts == self.known:
            return
        rows = (row(name, verdict) for name, verdict in sorted(verdicts.items()))
        try:
            verdict_file.write(self.file, rulebook.version(), rows)
        except OSError as error:
            self.report.log(f"verdicts are not kept: {self.file}: {error.strerror}")


def row(name: str, verdict: Verdict) -> Row:
    result, held = verdict.cell.result, verdict.cell.outcomes
    numbers = b"" if held.index is first(held.index.size) else held.index.tobytes()
    content = result.model_dump_json().encode()
    return Row(
        name, verdict.stamps, verdict.key, content, numbers, held.right.tobytes(), held.out_of
    )


def files(path: Path) -> tuple[Path, Path]:
    """A result and its records."""
    return path, path.with_suffix(".parquet")


def stamps(path: Path) -> tuple[int, ...]:
    """Size, mtime and ctime of both files; nothing where one is missing."""
    try:
        found = [file.stat() for file in files(path)]
    except OSError:
        return ()
    return tuple(n for stat in found for n in (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


def key(path: Path) -> bytes:
    """sha-256 of both files, 64 bytes; nothing where one cannot be read, as verifying it says."""
    try:
        return b"".join(content_hash(file) for file in files(path))
    except OSError:
        return b""


def content_hash(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


@contextmanager
def kept(board: Path, cache: Path | None, report: Reporter = SILENT) -> Iterator[Verdicts]:
    """Verdicts of a board while all of it is read; what was found is kept, also after an error."""
    verdicts = Verdicts(board, cache, report)
    try:
        yield verdicts
    except BaseException:
        verdicts.write(verdicts.known | verdicts.found)
        raise
    verdicts.write(verdicts.found)
