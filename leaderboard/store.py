"""A board: a folder of entries and what its maintainer wrote.

    BOARD/board.json            columns, controls and rule (record.py)
    BOARD/history.jsonl         which entries came and went (history.py)
    BOARD/verifications.jsonl   what signed badges said
    BOARD/<entry>/entry.json    an entry (fsbench/results/entry.py), with its outcomes beside it
    BOARD/<entry>/badges/       what others found when they ran it again

Whoever writes holds a lock, so simultaneous submissions lose nothing. entry.json is replaced by one
rename, after its outcomes were written under another name than the old ones: a reader sees the old
entry or the new one, also after a kill. What a killed process did not record, the next one does.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from fsbench.core import __version__
from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.results import outcomes
from fsbench.results.entry import (
    ENTRY_FILE,
    MAX_ENTRY,
    Entry,
    parse_entry,
    read_content,
    write_entry,
)
from fsbench.results.names import safe_name
from fsbench.results.verification import read_verified
from leaderboard import official, signatures
from leaderboard.badges import Verdict, read_badges
from leaderboard.columns import complete_columns
from leaderboard.entry_networks import Network, group_networks, is_control
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
from leaderboard.submission import Submission
from leaderboard.trust import Verification, read_verification

CHOOSE_NAME = "choose another name in the declaration; --replace replaces your own entry"


@dataclass(frozen=True, eq=False)
class BoardEntry(Entry):
    """An entry of a board, and what counts of its badges."""

    verification: Verification = field(default_factory=Verification)

    @property
    def results(self) -> list[Result]:
        return [one.result for one in self.loaded]

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        """All models, the seeds of the row first, by seed."""
        return group_networks(self.name, self.loaded, self.controls)

    @property
    def seeds(self) -> tuple[Network, ...]:
        """The models that are the row."""
        return tuple(network for network in self.networks if not network.is_control)


def complete_file(
    file: BoardFile, entries: Sequence[BoardEntry], added: Collection[str]
) -> BoardFile:
    """Return the definition with what the first entries decide: columns, and rows to be pooled.

    added: entries of the maintainer, of which those that others can be compared with are controls.
    """
    several = tuple(entry.name for entry in entries if len(entry.seeds) > 1)
    plain = (e.name for e in entries if e.name in added and is_control(e.seeds[0].facts))
    update = {
        "pooled": file.pooled or (several if len(several) >= FEWEST_POOLED else ()),
        "controls": tuple(dict.fromkeys((*file.controls, *plain))),
    }
    return complete_columns(file, [e.results for e in entries]).model_copy(update=update)


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
    def verdicts(self) -> dict[str, list[Verdict]]:
        """Identity of a network -> what signed badges said of it."""
        verdicts: dict[str, list[Verdict]] = {}
        for verdict in read_json_lines(self.folder / VERIFICATIONS_FILE, Verdict):
            verdicts.setdefault(verdict.weights, []).append(verdict)
        return verdicts

    def names(self) -> list[str]:
        """Return the names of the entries, sorted."""
        return sorted(path.parent.name for path in self.folder.glob(f"[!.]*/{ENTRY_FILE}"))

    def entries(self, report: Reporter = SILENT) -> list[BoardEntry]:
        """Read all entries and check every result, in the order in which entries came.

        Raises ValidationFailed.
        """
        names = self.history.sort(self.names())
        if not names:
            return []
        entries: list[BoardEntry] = []
        with report.task(f"read {self.file.name}", len(names), "entries") as advance:
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
        recorded = [v for m in entry.file.models for v in self.verdicts.get(m.identity, ())]
        verification = read_verification(entry, self.file.signers, self.history, recorded)
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

    def select_columns(self, submission: Submission) -> Submission:
        """Return the submission without what a board with a version has no column for."""
        if self.file.version is None:
            return submission
        loaded = tuple(c for c in submission.loaded if c.result.column in self.file.named)
        names = {one.result.column for one in submission.loaded} - self.file.named.keys()
        return replace(submission, loaded=loaded, left_out=tuple(map(str, sorted(names))))

    def add(
        self,
        submissions: Sequence[Submission],
        replace: bool = False,
        sign_with: Path | None = None,
    ) -> list[str]:
        """Write checked submissions as entries, signed by an SSH key if there is one.

        No submitted file is copied: entries are written from parsed records. Plain training and
        random networks become controls in board.json, as who adds to the folder is its maintainer;
        a pull request changes entries alone. Returns a sentence for each replaced entry. Raises
        ValidationFailed if a name is in use, or if another key signed the replaced entry.
        """
        key = signatures.read_public_key(sign_with) if sign_with else None
        with self.lock():
            for submission in submissions:
                self.require_writable(submission.name, replace, key)
            names = [submission.name for submission in submissions]
            replaced = [self.entry(name) for name in names if name in self.names()]
            for submission in submissions:
                write_entry(
                    self.folder / submission.name,
                    [(one.result, one.records) for one in submission.loaded],
                    submission.controls,
                    outcomes.SMALL,
                    declaration=submission.declaration,
                    submitted=now(),
                    fsbench=__version__,
                    key=key,
                )
                if sign_with is not None:  # entry.json names the digest of the outcomes
                    path = self.folder / submission.name / ENTRY_FILE
                    signatures.sign_file(path, sign_with, signatures.ENTRY_NAMESPACE)
            self.record_changes(names)
            return [describe_replacement(entry, self.entry(entry.name)) for entry in replaced]

    def find_name(self, name: str) -> str | None:
        """Return the entry of this name in any letter case, which some file systems ignore."""
        return next((entry for entry in self.names() if entry.casefold() == name.casefold()), None)

    def require_writable(self, name: str, replace: bool, key: str | None) -> None:
        """Raise ValidationFailed if an entry of this name may not be added, or not by this key."""
        present = self.find_name(name)
        if present is None:
            return
        if present != name or not replace:
            raise ValidationFailed(
                f"{self.folder} already has an entry '{present}'", fix=CHOOSE_NAME
            )
        if self.entry(name).file.key not in {None, key}:
            raise ValidationFailed(
                f"'{name}' is signed by another key", fix="give its owner's key: --sign-with KEY"
            )

    def remove(self, name: str, reason: str) -> None:
        """Take an entry from the board; its digest and outcomes do not come back.

        Raises UnknownName, and UsageError without a reason.
        """
        if not reason.strip():
            raise UsageError("no reason", fix='give one: --reason "..."')
        with self.lock():
            self.record_changes()
            if name not in self.names():
                raise UnknownName("entry", name, self.names())
            event = Board.open(self.folder, new=True).history.current[name]
            gone = event.model_copy(update={"date": now(), "event": "removed", "reason": reason})
            append_lines(self.folder / HISTORY_FILE, [gone])
            shutil.rmtree(self.folder / name)

    def record_changes(self, added: Collection[str] = ()) -> None:
        """Record changed entries, verdicts of signed badges, and what the first entries decide.

        added: entries that the maintainer has written, the newest. The caller holds the lock.
        """
        board = Board.open(self.folder, new=True)
        names = sorted(board.names(), key=lambda name: (name in added, name))
        events = board.list_changes(names)
        append_lines(self.folder / HISTORY_FILE, events)
        append_lines(self.folder / VERIFICATIONS_FILE, board.list_new_verdicts())
        if fresh := [event.entry for event in events if event.event != "removed"]:
            board = Board.open(self.folder, new=True)
            is_decided = board.file.columns and board.file.pooled
            entries = [board.entry(name) for name in fresh] if is_decided else board.entries()
            file = complete_file(board.file, entries, added)
            if file != board.file or not (self.folder / BOARD_FILE).is_file():
                write_record(self.folder / BOARD_FILE, file)

    def list_changes(self, names: Sequence[str]) -> list[Event]:
        """Return what happened to entries since the last event. Raises ValidationFailed."""
        current, events = self.history.current, []
        for name in names:
            path = self.folder / name / ENTRY_FILE
            text = read_content(path, MAX_ENTRY)
            digest = hashlib.sha256(text).hexdigest()
            if name not in current or current[name].entry_digest != digest:
                event = Event(
                    date=now(),
                    event="replaced" if name in current else "added",
                    entry=name,
                    entry_digest=digest,
                    outcomes=parse_entry(path, text).outcomes,
                )
                events.append(event)
        missing = (current[name] for name in sorted(current.keys() - set(names)))
        gone = {"date": now(), "event": "removed"}
        return events + [event.model_copy(update=gone) for event in missing]

    def list_new_verdicts(self) -> list[Verdict]:
        """Return what signed badges say that is not recorded yet. Raises ValidationFailed."""
        return [
            verdict
            for name in self.names()
            for path, badge in read_badges(self.folder / name)
            if signatures.is_signed(path, self.file.signers, signatures.BADGE_NAMESPACE)
            for verdict in badge.verdicts
            if verdict not in self.verdicts.get(verdict.weights, ())
        ]

    @contextmanager
    def lock(self) -> Iterator[None]:
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / ".lock"):
            yield


def describe_replacement(before: BoardEntry, after: BoardEntry) -> str:
    """Return which columns and seeds came and went, in one sentence."""
    old, new = (
        {f"column {result.column}" for result in entry.results}
        | {f"seed {network.seed}" for network in entry.seeds}
        for entry in (before, after)
    )
    changes = [
        f"{verb}: {', '.join(sorted(names))}"
        for verb, names in (("came", new - old), ("went", old - new))
        if names
    ]
    return f"{after.name} replaced; {'; '.join(changes) or 'the same columns and seeds'}"
