"""State of every job of a sweep: one JSON file a job, written by the scheduler, and its summary."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fsbench.api.options import SweepOptions
from fsbench.core.errors import FsbenchError
from fsbench.core.io import read_record, write_record
from fsbench.core.progress import format_duration
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.job import JobState


class StateFiles:
    def __init__(self, output: Path) -> None:
        self.folder = output / "jobs"

    def path(self, key: str) -> Path:
        return self.folder / f"{key[:16]}.json"

    def write(self, state: JobState) -> None:
        write_record(self.path(state.key), state)

    def read(self, key: str) -> JobState | None:
        """Return the state of a job; None if it never ran."""
        return read_record(self.path(key), JobState) if self.path(key).is_file() else None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for one scheduler. Raise FsbenchError if another one is running."""
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            acquired = FileLock(self.folder / ".lock").acquire(timeout=0)
        except Timeout as error:
            raise FsbenchError(
                f"another sweep is running in {self.folder.parent}",
                fix="wait for it (fsbench sweep FILE --status), or give another -o",
            ) from error
        with acquired:
            yield

    def is_locked(self) -> bool:
        """Return whether a scheduler is running here."""
        if not self.folder.is_dir():
            return False
        try:
            with self.lock():
                return False
        except FsbenchError:
            return True


LIVE, BROKEN = "running", "stopped"
"""States of a running job, and of a job whose sweep was killed."""
UNFINISHED = ("missing", LIVE, BROKEN, "failed")


def list_status(plan: SweepPlan, place: SweepOptions) -> list[JobState]:
    """Return the states of all jobs; folders and board take precedence over state files.

    seconds of a missing job: its estimate, if the plan has one.
    """
    states = StateFiles(place.output)
    is_running, rows = states.is_locked(), []
    for key, job in plan.graph.jobs.items():
        row = states.read(key) or JobState(key=key, kind=job.KIND, title=job.title)
        changes: dict[str, Any] = {"title": job.title}
        if key not in plan.done and key in plan.seconds:
            changes |= {"seconds": plan.seconds[key]}
        if key in plan.done:
            changes |= {"state": plan.done[key], "reason": ""}
        elif row.state == "done":  # its folder was deleted
            changes |= {"state": "missing", "reason": ""}
        elif row.state == LIVE and not is_running:
            changes |= {"state": BROKEN, "reason": "its sweep was killed; run it again to go on"}
        rows.append(row.model_copy(update=changes))
    return rows


def summarize_status(rows: list[JobState]) -> str:
    """Return e.g. '8 done, 12 missing; about 40 s one after the other'."""
    counts = Counter(row.state for row in rows)
    text = ", ".join(f"{n} {state}" for state, n in counts.items())
    left = sum(row.seconds or 0 for row in rows if row.state in UNFINISHED)
    return text + (f"; about {format_duration(left)} one after the other" if left else "")
