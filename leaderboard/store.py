"""A board: a folder of entries and what its maintainer wrote.

    BOARD/board.json            columns, controls and rule (record.py)
    BOARD/history.jsonl         which entries came and went (history.py)
    BOARD/verifications.jsonl   what signed badges said
    BOARD/<entry>/entry.json    an entry (fsbench/results/entry.py), with its outcomes beside it
    BOARD/<entry>/badges/       what others found when they ran it again

Entries are written in a staging folder and moved by two renames under a lock: simultaneous
submissions lose nothing, and a reader never sees half an entry. A process killed between the
renames leaves the old entry in the staging folder; the next process that adds to the board puts it
back. So a command that did not finish has changed nothing.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from fsbench.core import __version__
from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.process import paused_collection
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Result
from fsbench.results import outcomes
from fsbench.results.entry import (
    ENTRY_FILE,
    MAX_ENTRY,
    Entry,
    Loaded,
    parse_entry,
    read_content,
    write_entry,
)
from fsbench.results.names import BADGES, safe_name
from fsbench.results.verification import read_verified
from leaderboard import official, signatures
from leaderboard.badges import Verdict, read_badges
from leaderboard.columns import complete_columns
from leaderboard.history import (
    HISTORY_FILE,
    VERIFICATIONS_FILE,
    Event,
    History,
    append_lines,
    now,
    read_json_lines,
)
from leaderboard.official import BOARD_FILE
from leaderboard.ranking.outcomes import compact
from leaderboard.ranking.seeds import FEWEST_POOLED
from leaderboard.record import BoardFile
from leaderboard.trust import Verification, read_verification

if TYPE_CHECKING:
    from leaderboard.intake.submission import Submission

STAGING_PREFIX = ".staging-"
NEW, OLD = "new", "old"
"""Folders of the new and of the replaced entry, each under its name."""


@dataclass(frozen=True, eq=False)
class Network:
    """One model of an entry: a pretraining seed, or a control of its own.

    name: that of the entry where it is the only one, else e.g. `lw seed 1`.
    """

    name: str
    facts: BackboneFacts
    cells: tuple[Loaded, ...]
    seed: int
    is_control: bool = False


@dataclass(frozen=True, eq=False)
class BoardEntry(Entry):
    """An entry of a board, and what counts of its badges."""

    verification: Verification = field(default_factory=Verification)

    @property
    def results(self) -> list[Result]:
        return [cell.result for cell in self.cells]

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        """All models, the seeds of the row first, by seed."""
        controls = {self.file.models[i].identity for i in self.file.controls}
        cells: dict[str, list[Loaded]] = {}
        for cell in self.cells:
            cells.setdefault(cell.result.backbone.identity, []).append(cell)
        networks = []
        for is_control in (False, True):
            part = [c for identity, c in cells.items() if (identity in controls) == is_control]
            seeds = [seed_of(own[0].result.backbone) for own in part]
            if len(set(seeds)) < len(seeds):
                seeds = list(range(len(seeds)))
            word = "control" if is_control else "seed"
            for seed, own in sorted(zip(seeds, part, strict=True), key=lambda pair: pair[0]):
                alone = len(part) == 1 and not is_control
                name = self.name if alone else f"{self.name} {word} {seed}"
                networks.append(Network(name, own[0].result.backbone, tuple(own), seed, is_control))
        return tuple(networks)

    @property
    def seeds(self) -> tuple[Network, ...]:
        """The models that are the row."""
        return tuple(network for network in self.networks if not network.is_control)


def complete_file(file: BoardFile, entries: Sequence[BoardEntry]) -> BoardFile:
    """Return the definition with what the first entries decide: columns, and rows to be pooled."""
    file = complete_columns(file, [entry.results for entry in entries])
    several = tuple(entry.name for entry in entries if len(entry.seeds) > 1)
    if file.pooled or len(several) < FEWEST_POOLED:
        return file
    return file.model_copy(update={"pooled": several})


def is_control(facts: BackboneFacts) -> bool:
    """Return whether a network is random, or trained without any method."""
    return facts.random_init is not None or bool(facts.training and facts.training.plain)


def seed_of(facts: BackboneFacts) -> int:
    """Return the pretraining seed, or that of random weights; 0 where none is recorded."""
    if facts.random_init is None and facts.training is not None:
        return facts.training.view.seed
    return facts.random_init or 0


@dataclass(frozen=True)
class Board:
    """A board folder and its settings."""

    folder: Path
    file: BoardFile

    @classmethod
    def open(cls, folder: Path, *, new: bool = False) -> "Board":
        """Open the board in a folder. Raises ValidationFailed for a damaged one, and UsageError.

        new: whether it may hold no board yet, but for one in a folder inside it.
        """
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--board {folder} is a file", fix="give a folder")
        path = folder / BOARD_FILE
        if path.is_file():
            return cls(folder, official.read_board_file(path))
        board = cls(folder, BoardFile(name=safe_name(folder.resolve().name)))
        if not board.names():
            for inside in sorted(folder.glob(f"*/{BOARD_FILE}")):
                raise UsageError(
                    f"{folder} is no board, but contains one", fix=f"give --board {inside.parent}"
                )
            if not new:
                fix = "fsbench leaderboard init --board DIR starts one, as does the first submit"
                raise UsageError(f"there is no board at {folder}", fix=fix)
        return board

    @cached_property
    def history(self) -> History:
        return History(read_json_lines(self.folder / HISTORY_FILE, Event))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        return read_json_lines(self.folder / VERIFICATIONS_FILE, Verdict)

    def names(self) -> list[str]:
        """Return the names of the entries, sorted."""
        return sorted(path.parent.name for path in self.folder.glob(f"[!.]*/{ENTRY_FILE}"))

    def entries(self, report: Reporter = SILENT) -> list[BoardEntry]:
        """Read all entries and check every result, in the order in which entries came.

        Raises ValidationFailed.
        """
        names = sorted(self.names(), key=self.history.order)
        if not names:
            return []
        entries: list[BoardEntry] = []
        what = f"read {self.file.name}"
        with paused_collection(), report.task(what, len(names), "entries") as advance:
            for name in names:
                entries.append(self.entry(name))
                advance(1)
        return entries

    def entry(self, name: str) -> BoardEntry:
        """Read one entry, check its results and its badges.

        Raises ValidationFailed, UnknownName.
        """
        folder = self.folder / name
        if not (folder / ENTRY_FILE).is_file():
            raise UnknownName("entry", name, self.names())
        entry = compact(read_verified(folder))
        if entry.file.declaration is None or entry.name != name:
            raise ValidationFailed(
                f"{folder / ENTRY_FILE} declares the name '{entry.name}'",
                fix="name the folder after the entry",
            )
        verification = read_verification(entry, self.file.signers, self.history, self.verdicts)
        return BoardEntry(**vars(entry), verification=verification)

    def network(self, name: str) -> tuple[BoardEntry, Network]:
        """Return a network by its name: an entry, or a seed of one, e.g. `lw seed 1`.

        Raises UnknownName, and UsageError for an entry of several networks.
        """
        entries = [e for e in self.names() if name == e or name.startswith(f"{e} ")]
        if not entries:
            raise UnknownName("entry", name, self.names())
        entry = self.entry(entries[0])
        for network in entry.networks:
            if network.name == name:
                return entry, network
        listed = ", ".join(f"'{network.name}'" for network in entry.networks)
        raise UsageError(f"'{name}' is no single network", fix=f"name one: {listed}")

    def select_columns(self, submission: "Submission") -> "Submission":
        """Return the submission without what an official board or a version has no column for."""
        if self.file.has_extra:
            return submission
        cells = tuple(c for c in submission.cells if c.result.column in self.file.named)
        names = {cell.result.column for cell in submission.cells} - self.file.named.keys()
        return replace(submission, cells=cells, left_out=tuple(map(str, sorted(names))))

    def add(
        self,
        submissions: "Sequence[Submission]",
        replace: bool = False,
        sign_with: Path | None = None,
    ) -> list[str]:
        """Store checked submissions, signed by an SSH key if there is one.

        Plain training and random networks become controls in board.json: who adds to the folder is
        its maintainer. A pull request changes entries alone. Returns a sentence for each replaced
        entry, which says what came and went. Raises ValidationFailed if a name is in use, or if
        another key signed the replaced entry.
        """
        key = signatures.read_public_key(sign_with) if sign_with else None
        with self.lock():
            for staging in list_leftovers(self.folder):
                settle_staging(self.folder, staging)
            for submission in submissions:
                self.require_place(submission.name, replace, key)
            self.settle()
            sentences = [self.store(submission, sign_with) for submission in submissions]
            self.settle()
            self.name_controls([submission.name for submission in submissions])
        return [sentence for sentence in sentences if sentence]

    def name_controls(self, names: Sequence[str]) -> None:
        """Add those of these entries that others can be compared with to the board's controls."""
        file = Board.open(self.folder, new=True).file
        plain = [name for name in names if is_control(self.entry(name).seeds[0].facts)]
        if fresh := tuple(name for name in plain if name not in file.controls):
            file = file.model_copy(update={"controls": (*file.controls, *fresh)})
            write_record(self.folder / BOARD_FILE, file)

    def taken(self, name: str) -> str | None:
        """Return the entry of this name in any letter case, which some file systems ignore."""
        return next((entry for entry in self.names() if entry.casefold() == name.casefold()), None)

    def require_place(self, name: str, replace: bool, key: str | None) -> None:
        """Raise ValidationFailed if an entry of this name may not be added, or not by this key."""
        taken = self.taken(name)
        if taken is None:
            return
        if not replace:
            raise ValidationFailed(
                f"{self.folder} already has an entry '{taken}'",
                fix="choose another name in the declaration; --replace replaces your own entry",
            )
        if self.entry(taken).file.key not in {None, key}:
            raise ValidationFailed(
                f"'{taken}' is signed by another key", fix="give its owner's key: --sign-with KEY"
            )

    def store(self, submission: "Submission", sign_with: Path | None = None) -> str:
        """Write an entry beside the board's others, then move it into place by two renames.

        Returns what changed if it replaces one. The caller holds the lock.
        """
        name, replaced = submission.name, self.taken(submission.name)
        before = self.entry(replaced) if replaced else None
        staging = Path(mkdtemp(prefix=STAGING_PREFIX, dir=self.folder))
        new = staging / NEW / name
        try:
            if (badges := self.folder / name / BADGES).is_dir():  # a failed one is not lost
                shutil.copytree(badges, new / BADGES)
            write_submission(new, submission, sign_with)
            if replaced is not None:
                (staging / OLD).mkdir()
                (self.folder / replaced).rename(staging / OLD / replaced)
            new.rename(self.folder / name)
        finally:
            settle_staging(self.folder, staging)
        return describe_replacement(before, self.entry(name)) if before else ""

    def remove(self, name: str, reason: str) -> None:
        """Take an entry from the board; its digest and outcomes do not come back.

        Raises UnknownName, and UsageError without a reason.
        """
        if not reason.strip():
            raise UsageError("no reason", fix='give one: --reason "..."')
        with self.lock():
            self.settle()
            if name not in self.names():
                raise UnknownName("entry", name, self.names())
            event = Board.open(self.folder, new=True).history.current[name]
            gone = event.model_copy(update={"date": now(), "event": "removed", "reason": reason})
            append_lines(self.folder / HISTORY_FILE, [gone])
            shutil.rmtree(self.folder / name)

    def settle(self) -> None:
        """Record what changed: entries, verdicts of signed badges, and what first entries decide.

        The caller holds the lock.
        """
        board = Board.open(self.folder, new=True)
        present = {name: board.read_digests(name) for name in board.names()}
        events = board.history.list_changes(present)
        append_lines(self.folder / HISTORY_FILE, events)
        verdicts = chain.from_iterable(
            badge.verdicts
            for name in present
            for path, badge in read_badges(self.folder / name)
            if signatures.is_signed(path, board.file.signers, signatures.BADGE_NAMESPACE)
        )
        new = [verdict for verdict in verdicts if verdict not in board.verdicts]
        append_lines(self.folder / VERIFICATIONS_FILE, new)
        fresh = [event.entry for event in events if event.event != "removed"]
        if fresh:
            is_decided = board.file.columns and board.file.pooled
            names = sorted(present, key=History((*board.history.events, *events)).order)
            entries = [board.entry(name) for name in (fresh if is_decided else names)]
            file = complete_file(board.file, entries)
            if file != board.file or not (self.folder / BOARD_FILE).is_file():
                write_record(self.folder / BOARD_FILE, file)

    def read_digests(self, name: str) -> tuple[str, str]:
        """Return the digests of an entry and of its outcomes. Raises ValidationFailed."""
        path = self.folder / name / ENTRY_FILE
        text = read_content(path, MAX_ENTRY)
        return hashlib.sha256(text).hexdigest(), parse_entry(path, text).outcomes

    @contextmanager
    def lock(self) -> Iterator[None]:
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / ".lock"):
            yield


def write_submission(folder: Path, submission: "Submission", sign_with: Path | None) -> None:
    """Write an entry folder from parsed records; no submitted file is copied.

    sign_with: the SSH key that signs entry.json, which names the digest of the outcomes.
    """
    write_entry(
        folder,
        [(cell.result, cell.records) for cell in submission.cells],
        submission.controls,
        outcomes.SMALL,
        declaration=submission.declaration,
        submitted=now(),
        fsbench=__version__,
        key=signatures.read_public_key(sign_with) if sign_with else None,
    )
    if sign_with is not None:
        signatures.sign_file(folder / ENTRY_FILE, sign_with, signatures.ENTRY_NAMESPACE)


def describe_replacement(before: BoardEntry, after: BoardEntry) -> str:
    """Return which columns and seeds came and went, in one sentence."""
    columns = ({str(result.column) for result in entry.results} for entry in (before, after))
    seeds = ({str(network.seed) for network in entry.seeds} for entry in (before, after))
    parts = []
    for what, (old, new) in (("column", columns), ("seed", seeds)):
        for verb, some in (("came", new - old), ("went", old - new)):
            if some:
                parts.append(f"{verb}: {what}{'s' * (len(some) > 1)} {', '.join(sorted(some))}")
    return f"{after.name} replaced; {'; '.join(parts) or 'the same columns and seeds'}"


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
