"""What a board remembers beside its entries, as JSON lines that only a maintainer writes.

    BOARD/history.jsonl          an entry came, was replaced or was removed, with its digest
    BOARD/verifications.jsonl    what a signed badge said about weights and a column

Both are appended to, never rewritten. The history dates entries, whatever these say themselves, and
a removed digest does not come back. A verdict belongs to weights, so a failed one stays with them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import refuse_invalid
from fsbench.core.schema import Date, Name, Sha256, Text
from fsbench.core.specs import Frozen, omitted
from fsbench.results.entry import read_content

HISTORY_FILE, VERIFICATIONS_FILE = "history.jsonl", "verifications.jsonl"
MAX_LINES = 64 * 2**20
"""Bytes of one of the files; a line takes 300."""
Line = TypeVar("Line", bound=Frozen)


class Event(Frozen):
    """A change of one entry; entry_digest: of entry.json, outcomes: of the file of outcomes."""

    date: Date
    event: Literal["added", "replaced", "removed"]
    entry: Name
    entry_digest: Sha256
    outcomes: Sha256
    reason: Text | None = omitted(None)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_json_lines(path: Path, kind: type[Line]) -> tuple[Line, ...]:
    """Return the records of a file of JSON lines, none if it is not there.

    Raises ValidationFailed naming the first wrong line.
    """
    if not path.exists():
        return ()
    records = []
    fix = "restore it from the board's repository: lines are added, never edited"
    for number, line in enumerate(read_content(path, MAX_LINES).splitlines(), 1):
        about = f"{path}, line {number}"
        with refuse_invalid(ValidationFailed, about, fix, kind.model_fields):
            records.append(kind.model_validate_json(line))
    return tuple(records)


def append_lines(path: Path, records: Iterable[Frozen]) -> None:
    """Add records to a file of JSON lines."""
    if lines := [record.model_dump_json() + "\n" for record in records]:
        with path.open("a", encoding="utf8", newline="\n") as file:
            file.writelines(lines)


@dataclass(frozen=True)
class History:
    """The events of a board, in order."""

    events: tuple[Event, ...] = ()

    @cached_property
    def current(self) -> dict[str, Event]:
        """Entry -> its last event, of entries that were not removed."""
        last = {event.entry: event for event in self.events}
        return {name: event for name, event in last.items() if event.event != "removed"}

    @cached_property
    def added(self) -> dict[str, str]:
        """Entry -> date on which it came, or came back; in this order."""
        dates: dict[str, str] = {}
        for event in self.events:
            if event.event == "removed":
                dates.pop(event.entry, None)
            else:
                dates.setdefault(event.entry, event.date)
        return dates

    @cached_property
    def removed(self) -> dict[str, Event]:
        """Digest of an entry or of its outcomes -> why a maintainer removed it."""
        gone = [event for event in self.events if event.event == "removed" and event.reason]
        return {digest: e for e in gone for digest in (e.entry_digest, e.outcomes)}

    def sort(self, names: Iterable[str]) -> list[str]:
        """Return entries as they came, those without an event at last."""
        numbers = {name: i for i, name in enumerate(self.added)}
        return sorted(names, key=lambda name: (numbers.get(name, len(numbers)), name))
