"""A board: a folder of entry folders and the definition of what it compares.

    BOARD/board.json                            optional: a BoardFile
    BOARD/<entry>/entry.json                    the declaration and the date of submission
    BOARD/<entry>/<model>/<weights12>/...       results, in the layout of a results folder

Entries are written in a staging folder and moved by two renames under a lock: simultaneous
submissions lose nothing, and a reader never sees half an entry. A process killed between the
renames leaves the old entry in the staging folder; the next process that adds to the board puts it
back. So a command that did not finish has changed nothing.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fsbench.core import __version__
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.core.process import paused_collection
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Declaration
from fsbench.core.specs import Frozen
from fsbench.results import assembly
from fsbench.results.names import MODEL_FILE
from fsbench.results.verification import Loaded
from leaderboard.board import badges, official, signatures
from leaderboard.board.badges import Verification
from leaderboard.board.definition import BoardFile
from leaderboard.board.official import BOARD_FILE
from leaderboard.board.signatures import PublicKey
from leaderboard.submission import chain as chains
from leaderboard.submission import result_cache
from leaderboard.submission.chain import HashChain
from leaderboard.submission.result_cache import ResultCache

if TYPE_CHECKING:
    from leaderboard.submission.submission import Submission

STAGING_PREFIX = ".staging-"
NEW, OLD = "new", "old"
"""Folders of the new and of the replaced entry, each under its name."""
ENTRY_FILE = "entry.json"


class EntryFile(Frozen):
    """A measured entry without its results."""

    schema_version: Literal[1] = 1
    kind: Literal["measured"] = "measured"
    declaration: Declaration
    submitted: str = Field(description="UTC, ISO 8601")
    fsbench: str = Field(description="version that checked it")
    chain: HashChain | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="weights -> data -> manifest -> spec -> records of every result",
    )
    key: PublicKey | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="of the owner, who signed this file: no other key replaces the entry",
    )


@dataclass(frozen=True, eq=False)
class BoardEntry:
    """A measured entry with its results, whose hashes are checked, and what its badges say."""

    file: EntryFile
    cells: tuple[Loaded, ...]
    verification: Verification = field(default_factory=Verification)

    @property
    def name(self) -> str:
        return self.file.declaration.name


@dataclass(frozen=True)
class Board:
    """A board folder and its settings."""

    folder: Path
    file: BoardFile

    @classmethod
    def open(cls, folder: Path) -> "Board":
        """Open the board at `folder`, which may not exist. Raises ValidationFailed, UsageError."""
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--board {folder} is a file", fix="give a folder")
        path = folder / BOARD_FILE
        default = BoardFile(name="board")
        return cls(folder, official.read_board_file(path) if path.is_file() else default)

    @classmethod
    def existing(cls, folder: Path) -> "Board":
        """Open the board at `folder`, which must exist. Raises ValidationFailed, UsageError."""
        if not folder.exists():
            raise UsageError(
                f"there is no board at {folder}", fix="fsbench submit RESULTS --board DIR makes one"
            )
        return cls.open(folder)

    def names(self) -> list[str]:
        """Return the names of the measured entries, sorted."""
        return sorted(path.parent.name for path in self.folder.glob(f"[!.]*/{ENTRY_FILE}"))

    def entries(self, cache: Path | None = None, report: Reporter = SILENT) -> list[BoardEntry]:
        """Read all measured entries and verify every result. Raises ValidationFailed.

        With a cache folder a result is verified once per content (submission/result_cache.py).
        """
        names = self.names()
        if not names:
            return []
        entries: list[BoardEntry] = []
        with paused_collection(), result_cache.open_cache(self.folder, cache, report) as results:
            results.verify_missing([self.folder / name for name in names])
            with report.task(f"read {self.file.name}", len(names), "entries") as advance:
                for name in names:
                    entries.append(self.entry(name, results))
                    advance(1)
        return entries

    def entry(self, name: str, results: ResultCache | None = None) -> BoardEntry:
        """Read one entry and verify its results, chain and badges. Raises ValidationFailed."""
        folder = self.folder / name
        file = read_record(folder / ENTRY_FILE, EntryFile)
        if file.declaration.name != name:
            raise ValidationFailed(
                f"{folder / ENTRY_FILE} declares the name '{file.declaration.name}'",
                fix="name the folder after the entry",
            )
        verified = (results or ResultCache(self.folder)).read_results(folder)
        chain = chains.build_chain(verified)
        if file.chain is not None and file.chain != chain:
            changes = [*chains.find_changes(file.chain, verified, str(folder))]
            if changes:
                raise ValidationFailed("\n  ".join(map(str, changes)))
        columns = {loaded.result.column for loaded in verified}
        verification = badges.read_verification(folder, columns, chain.end, self.file.signers)
        return BoardEntry(file, verified, verification)

    def select_columns(self, submission: "Submission") -> "Submission":
        """Return the submission without results that belong to no column of this board."""
        if self.file.columns is None:
            return submission
        results = [loaded for loaded in submission.cells if loaded.result.column in self.file.named]
        names = {loaded.result.column for loaded in submission.cells} - self.file.named.keys()
        return submission.with_results(results, [str(name) for name in sorted(names)])

    def add(
        self,
        submissions: "Sequence[Submission]",
        replace: bool = False,
        sign_with: Path | None = None,
    ) -> list[Path]:
        """Store checked submissions, signed by an SSH key if there is one.

        Raises ValidationFailed if a name is in use, or if another key signed the replaced entry.
        """
        key = signatures.read_public_key(sign_with) if sign_with else None
        with self.lock():
            recover_entries(self.folder)
            if not replace:
                for submission in submissions:
                    self.require_free(submission.name)
            for submission in submissions:
                self.require_key(submission.name, key)
            return [self.store(submission, sign_with) for submission in submissions]

    def taken(self, name: str) -> str | None:
        """Return the entry of this name in any letter case, which some file systems ignore."""
        return next((entry for entry in self.names() if entry.casefold() == name.casefold()), None)

    def require_free(self, name: str) -> None:
        if taken := self.taken(name):
            raise ValidationFailed(
                f"{self.folder} already has an entry '{taken}'",
                fix="choose another name in the declaration; --replace replaces your own entry",
            )

    def require_key(self, name: str, key: str | None) -> None:
        """Raise ValidationFailed if the entry of this name is signed by another key."""
        taken = self.taken(name)
        signer = taken and read_record(self.folder / taken / ENTRY_FILE, EntryFile).key
        if signer and signer != key:
            raise ValidationFailed(
                f"'{taken}' is signed by another key", fix="give its owner's key: --sign-with KEY"
            )

    def store(self, submission: "Submission", sign_with: Path | None = None) -> Path:
        """Write an entry beside the board's others, then move it into place.

        Badges stay if the results are equal: a failed verification is not lost that way.
        """
        name, replaced = submission.name, self.taken(submission.name)

        def write(new: Path) -> None:
            write_entry(new, submission, sign_with)
            if replaced is not None:
                end = chains.build_chain(submission.cells).end
                badges.copy_badges(self.folder / replaced, new, end)

        return place_entry(self.folder, name, replaced, write)

    @contextmanager
    def lock(self) -> Iterator[None]:
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / ".lock"):
            yield


def write_entry(folder: Path, submission: "Submission", sign_with: Path | None = None) -> None:
    """Write an entry folder from parsed records; no submitted file is copied.

    sign_with: the SSH key that signs entry.json, whose chain covers all results.
    """
    home = folder / submission.model / submission.facts.identity[:12]
    write_record(home / MODEL_FILE, submission.facts)
    for loaded in submission.cells:
        path = home / loaded.result.dataset.name / loaded.path.name
        assembly.write_result(path, loaded.result, loaded.records)
    entry = EntryFile(
        declaration=submission.declaration,
        submitted=datetime.now(UTC).isoformat(timespec="seconds"),
        fsbench=__version__,
        chain=chains.build_chain(submission.cells),
        key=signatures.read_public_key(sign_with) if sign_with else None,
    )
    write_record(folder / ENTRY_FILE, entry)
    if sign_with is not None:
        signatures.sign_file(folder / ENTRY_FILE, sign_with, signatures.ENTRY_NAMESPACE)


def place_entry(
    board: Path, name: str, replaced: str | None, write: Callable[[Path], None]
) -> Path:
    """Write an entry, then move it to BOARD/name and remove the entry `replaced`.

    Readers see only the two renames. The caller holds the board's lock.
    """
    staging = Path(mkdtemp(prefix=STAGING_PREFIX, dir=board))
    try:
        write(staging / NEW / name)
        if replaced is not None:
            (staging / OLD).mkdir()
            (board / replaced).rename(staging / OLD / replaced)
        (staging / NEW / name).rename(board / name)
    finally:
        settle_staging(board, staging)
    return board / name


def recover_entries(board: Path) -> None:
    """Restore the entries that killed processes left. The caller holds the board's lock."""
    for staging in list_leftovers(board):
        settle_staging(board, staging)


def list_leftovers(board: Path) -> list[Path]:
    """Return the staging folders of a writing process or of killed processes."""
    return sorted(path for path in board.glob(f"{STAGING_PREFIX}*") if path.is_dir())


def settle_staging(board: Path, staging: Path) -> None:
    """Put the old entry back unless a new one took its place, then remove the staging folder."""
    present = {path.name.casefold() for path in board.glob("[!.]*")}
    for entry in (staging / OLD).glob("[!.]*"):
        if entry.name.casefold() not in present:
            entry.rename(board / entry.name)
    shutil.rmtree(staging, ignore_errors=True)
