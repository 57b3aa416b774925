"""What is known of every job of a sweep folder: jobs/<key16>.json, written by the one scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from fsbench.core.errors import FsbenchError
from fsbench.core.io import read_record, write_record
from fsbench.core.schema import Sha256
from fsbench.core.specs import Frozen
from fsbench.sweep.file import Kind


class Seen(Frozen):
    """The last thing that happened to a job. Seconds and host are those of the work itself."""

    key: Sha256
    kind: Kind
    title: str
    state: Literal["running", "done", "failed"]
    attempt: int = Field(ge=1)
    since: str = Field(description="UTC, ISO 8601")
    engine: str
    threads: int = Field(ge=1)
    seconds: float | None = Field(None, ge=0)
    host: str | None = None
    pid: int | None = None
    reason: str = ""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class States:
    """The states of all jobs below a sweep's output folder."""

    def __init__(self, output: Path) -> None:
        self.folder = output / "jobs"

    def path(self, key: str) -> Path:
        return self.folder / f"{key[:16]}.json"

    def write(self, seen: Seen) -> None:
        write_record(self.path(seen.key), seen)

    def read(self, key: str) -> Seen | None:
        """None where the job never ran."""
        return read_record(self.path(key), Seen) if self.path(key).is_file() else None

    @contextmanager
    def owned(self) -> Iterator[None]:
        """One scheduler at a time. Raises FsbenchError when another one works here."""
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise FsbenchError(
                f"another sweep is running in {self.folder.parent}",
                fix="wait for it (fsbench sweep status FILE), or give another -o",
            ) from error
        with lock:
            yield

    def alive(self) -> bool:
        """Whether a scheduler works here now."""
        if not self.folder.is_dir():
            return False
        try:
            with self.owned():
                return False
        except FsbenchError:
            return True
