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
from typing import Literal

from pydantic import Field

from fsbench import __version__
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Declaration
from fsbench.core.specs import Frozen
from fsbench.results import building
from fsbench.results.names import MODEL_FILE
from fsbench.results.rules import Loaded
from leaderboard.board import badges, official
from leaderboard.board.badges import Badge
from leaderboard.board.definition import BoardFile
from leaderboard.board.official import BOARD_FILE
from leaderboard.submission import chain as chains
from leaderboard.submission import result_cache
from leaderboard.submission.chain import HashChain
from leaderboard.submission.result_cache import ResultCache
from leaderboard.submission.staging import place_entry, recover_entries
from leaderboard.submission.submission import Submission

ENTRY_FILE = "entry.json"


class EntryFile(Frozen):
    """A measured entry, but for its results."""

    schema_version: Literal[1] = 1
    kind: Literal["measured"] = "measured"
    declaration: Declaration
    submitted: str = Field(description="UTC, ISO 8601")
    fsbench: str = Field(description="version that checked it")
    chain: HashChain | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="weights -> data -> manifest -> spec -> records of every cell",
    )


@dataclass(frozen=True, eq=False)
class BoardEntry:
    """A measured entry with its verified results; badge: of those who ran it again, if any did."""

    file: EntryFile
    cells: tuple[Loaded, ...]
    badge: Badge | None = None

    @property
    def name(self) -> str:
        return self.file.declaration.name


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
        return cls(folder, official.read_board_file(path) if path.is_file() else default)

    @classmethod
    def existing(cls, folder: Path) -> Board:
        """The board at `folder`, which is there. Raises as `open`."""
        if not folder.exists():
            raise UsageError(
                f"there is no board at {folder}", fix="fsbench submit RESULTS --board DIR makes one"
            )
        return cls.open(folder)

    def names(self) -> list[str]:
        """Names of the measured entries, sorted."""
        return sorted(path.parent.name for path in self.folder.glob(f"[!.]*/{ENTRY_FILE}"))

    def entries(self, cache: Path | None = None, report: Reporter = SILENT) -> list[BoardEntry]:
        """All measured entries, every result verified, once for each content where there is a cache
        folder (verdicts.py). Raises ValidationFailed."""
        names, found = self.names(), []
        with (
            result_cache.open_cache(self.folder, cache, report) as results,
            report.task(f"read {self.file.name}", len(names), "entries") as advance,
        ):
            for name in names:
                found.append(self.entry(name, results))
                advance(1)
        return found

    def entry(self, name: str, results: ResultCache | None = None) -> BoardEntry:
        folder = self.folder / name
        file = read_record(folder / ENTRY_FILE, EntryFile)
        if file.declaration.name != name:
            raise ValidationFailed(
                f"{folder / ENTRY_FILE} declares the name '{file.declaration.name}'",
                fix="name the folder after the entry",
            )
        found = (results or ResultCache(self.folder)).read_results(folder)
        if file.chain is not None:
            chains.require_unchanged(file.chain, found, str(folder))
        held = badges.read_badges(folder)
        badge = badges.select_badge(held, chains.build_chain(found).end) if held else None
        return BoardEntry(file, found, badge)

    def select_columns(self, candidate: Submission) -> Submission:
        """The candidate without results that bear the name of no column of this board."""
        if self.file.columns is None:
            return candidate
        kept = [cell for cell in candidate.cells if cell.result.column in self.file.named]
        names = {cell.result.column for cell in candidate.cells} - self.file.named.keys()
        return candidate.with_results(kept, [str(name) for name in sorted(names)])

    def add(self, candidates: Sequence[Submission], replace: bool = False) -> list[Path]:
        """Store checked candidates. Raises ValidationFailed when a name is taken."""
        with self.lock():
            recover_entries(self.folder)
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

    def store(self, candidate: Submission) -> Path:
        """Write an entry beside the board's others, then move it into place."""
        held = self.taken(candidate.name)
        return place_entry(
            self.folder, candidate.name, held, lambda new: write_entry(new, candidate)
        )

    @contextmanager
    def lock(self) -> Iterator[None]:
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / ".lock"):
            yield


def write_entry(folder: Path, candidate: Submission) -> None:
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
        chain=chains.build_chain(candidate.cells),
    )
    write_record(folder / ENTRY_FILE, entry)
