"""Where faults are tried: a job's reference, folders in its starting state, and what was torn."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from safetensors.numpy import load_file
from stress.command import Fault, call
from stress.jobs import JOBS, Job, Outcome, visible

from fsbench.results.entry import ENTRY_FILE, read_entry


@dataclass(frozen=True)
class Reference:
    """A run without faults: what it left, how long it took (s), how many changes it made, and the
    bytes of its largest file."""

    job: Job
    outcome: Outcome
    seconds: float
    changes: int
    largest: int


class Trials:
    """Trials below one folder; references are made once."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self._known: dict[str, Reference] = {}

    def reference(self, name: str) -> Reference:
        if name not in self._known:
            job, folder = JOBS[name], self.fresh(name, "reference")
            started = time.monotonic()
            code = call(job.arguments(folder), log(folder), Fault(folder, change=-1))
            assert code == 0, log(folder).read_text()
            changes = int(Path(f"{folder}.count").read_text())
            outcome, seconds = job.outcome(folder), time.monotonic() - started
            assert outcome, f"{name} leaves nothing"
            largest = max((folder / file).stat().st_size for file in outcome)
            self._known[name] = Reference(job, outcome, seconds, changes, largest)
        return self._known[name]

    def fresh(self, name: str, what: str) -> Path:
        """A folder in which the job can start."""
        folder = self.work / f"{name} {what}".replace(" ", "-")
        folder.mkdir(parents=True)
        JOBS[name].prepare(folder)
        return folder


def log(folder: Path) -> Path:
    """What commands in the folder said."""
    return Path(f"{folder}.log")


def rng(*names: object) -> Random:
    """The seeded draws of one trial."""
    return Random(" ".join(map(str, names)))


def after(job: Job, folder: Path) -> tuple[Outcome, str]:
    """The same command again: what is there now, and its log when it failed."""
    code = call(job.arguments(folder), log(folder))
    return job.outcome(folder), f"then exit {code}: {log(folder).read_text()}" if code else ""


def torn(job: Job, folder: Path) -> Iterator[Path]:
    """Visible files that cannot be read."""
    for part in job.parts:
        for file in visible(folder / part):
            try:
                read(file)
            except Exception:  # noqa: BLE001 - every reader has errors of its own
                yield file


def read(file: Path) -> None:
    """Read a file by its kind. Raises whatever its reader raises."""
    if file.name == ENTRY_FILE:
        read_entry(file.parent)
    elif file.suffix == ".json":
        json.loads(file.read_text())
    elif file.suffix == ".jsonl":
        for line in file.read_text().splitlines():
            json.loads(line)
    elif file.suffix == ".safetensors":
        load_file(file)
    elif file.suffix == ".npy":
        np.load(file)
    elif file.suffix == ".html":
        assert file.read_text().rstrip().endswith("</html>")
