"""A board: a folder of entry folders, and what it compares.

    BOARD/board.json                            optional: what a BoardFile holds
    BOARD/<entry>/entry.json                    the declaration, when it was submitted
    BOARD/<entry>/<model>/<weights12>/...       results, laid out as any results folder

Entries are written by rename under a lock, so two submitters at once lose nothing and a reader
never sees half an entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from fsbench import __version__
from fsbench.errors import UsageError, ValidationFailed
from fsbench.results import building
from fsbench.results.files import read_record, write_record
from fsbench.results.names import MODEL_FILE
from fsbench.results.reading import cells
from fsbench.results.rules import Loaded
from fsbench.results.table import row_key
from fsbench.schema import Declaration, Name, Result, Sha256, Text
from fsbench.specs import Frozen
from leaderboard.candidate import Candidate
from leaderboard.published import published
from leaderboard.staging import place, recover

__all__ = ["Board", "BoardFile", "Column", "Entry", "EntryFile", "column_of", "published"]

BOARD_FILE, ENTRY_FILE = "board.json", "entry.json"
TRANSDUCTIVE = "transductive"


class Column(Frozen):
    """What one column compares: results of equal spec on equal images, hence equal episodes."""

    name: Text = Field(description="task and input size, e.g. eurosat:5w1s/linear@ibm 224px")
    spec_digest: Sha256
    fingerprint: Sha256 = Field(description="of the images, and of the groups of a disjoint track")

    @property
    def transductive(self) -> bool:
        """Its outcomes depend on the other queries of their episodes; the name says so."""
        return TRANSDUCTIVE in self.name.split()


class BoardFile(Frozen):
    """Settings of a board; without columns it compares all that its entries hold."""

    schema_version: Literal[1] = 1
    name: Name
    official: bool = Field(False, description="refuses every flag and every target seen")
    transductive: bool = Field(False, description="compares transductive results, and only those")
    columns: tuple[Column, ...] | None = None

    @model_validator(mode="after")
    def _one_track(self) -> Self:
        for column in self.columns or ():
            if column.transductive != self.transductive:
                raise ValueError(f"{column.name} on a board with transductive={self.transductive}")
        return self


class EntryFile(Frozen):
    """A measured entry, but for its results."""

    schema_version: Literal[1] = 1
    kind: Literal["measured"] = "measured"
    declaration: Declaration
    submitted: str = Field(description="UTC, ISO 8601")
    fsbench: str = Field(description="version that checked it")


@dataclass(frozen=True, eq=False)
class Entry:
    """A measured entry with its verified results."""

    file: EntryFile
    cells: tuple[Loaded, ...]

    @property
    def name(self) -> str:
        return self.file.declaration.name


def column_of(result: Result) -> Column:
    """The column a result belongs to."""
    return Column(
        name=result.column, spec_digest=result.spec_digest, fingerprint=result.dataset.identity
    )


@dataclass(frozen=True)
class Board:
    """A board folder and its settings."""

    folder: Path
    file: BoardFile

    @classmethod
    def open(cls, folder: Path) -> Board:
        """The board at `folder`, which need not exist yet. Raises ValidationFailed, UsageError."""
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--board {folder} is a file", fix="give a folder")
        path = folder / BOARD_FILE
        default = BoardFile(name="board")
        return cls(folder, read_record(path, BoardFile) if path.is_file() else default)

    def names(self) -> list[str]:
        """Names of the measured entries, sorted."""
        return sorted(path.parent.name for path in self.folder.glob(f"[!.]*/{ENTRY_FILE}"))

    def entries(self) -> list[Entry]:
        """All measured entries, every result verified. Raises ValidationFailed."""
        return [self.entry(name) for name in self.names()]

    def entry(self, name: str) -> Entry:
        folder = self.folder / name
        file = read_record(folder / ENTRY_FILE, EntryFile)
        if file.declaration.name != name:
            raise ValidationFailed(
                f"{folder / ENTRY_FILE} declares the name '{file.declaration.name}'",
                fix="name the folder after the entry",
            )
        return Entry(file, tuple(cells(folder)))

    def columns(self, entries: Sequence[Entry]) -> tuple[Column, ...]:
        """The board's own columns, else every column that an entry holds, sorted."""
        if self.file.columns is not None:
            return self.file.columns
        held = {column_of(cell.result) for entry in entries for cell in entry.cells}
        held = {column for column in held if column.transductive == self.file.transductive}
        return tuple(sorted(held, key=lambda c: (row_key(c.name), c.spec_digest, c.fingerprint)))

    def relevant(self, candidate: Candidate) -> Candidate:
        """The candidate without results that bear the name of no column of this board.

        Where it names none, without those of the other track unless there are only such.
        """
        if self.file.columns is None:
            alike = [cell for cell in candidate.cells if self.of_track(cell.result)]
            return candidate.keeping(alike or candidate.cells)
        named = {column.name for column in self.file.columns}
        return candidate.keeping(c for c in candidate.cells if c.result.column in named)

    def of_track(self, result: Result) -> bool:
        """Whether it is transductive if and only if this board is."""
        return column_of(result).transductive == self.file.transductive

    def add(self, candidates: Sequence[Candidate], replace: bool = False) -> list[Path]:
        """Store checked candidates. Raises ValidationFailed when a name is taken."""
        with self.lock():
            recover(self.folder)
            if not replace:
                for candidate in candidates:
                    self.require_free(candidate.name)
            return [self.store(candidate) for candidate in candidates]

    def taken(self, name: str) -> str | None:
        """The entry of this name in any letter case: not every file system tells them apart."""
        return next((held for held in self.names() if held.casefold() == name.casefold()), None)

    def require_free(self, name: str) -> None:
        if held := self.taken(name):
            raise ValidationFailed(
                f"{self.folder} already has an entry '{held}'",
                fix="choose another --name, or give --replace to replace your own entry",
            )

    def store(self, candidate: Candidate) -> Path:
        """Write an entry beside the board's others, then move it into place."""
        held = self.taken(candidate.name)
        return place(self.folder, candidate.name, held, lambda new: write_entry(new, candidate))

    @contextmanager
    def lock(self) -> Iterator[None]:
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / ".lock"):
            yield


def write_entry(folder: Path, candidate: Candidate) -> None:
    """The entry as a folder: written anew from parsed records, nothing is copied."""
    home = folder / candidate.model / candidate.facts.weights_hash[:12]
    write_record(home / MODEL_FILE, candidate.facts)
    for cell in candidate.cells:
        path = home / cell.result.dataset.name / cell.path.name
        building.write(path, cell.result, cell.records)
    entry = EntryFile(
        declaration=candidate.declaration,
        submitted=datetime.now(UTC).isoformat(timespec="seconds"),
        fsbench=__version__,
    )
    write_record(folder / ENTRY_FILE, entry)
