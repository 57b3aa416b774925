"""Where faults are tried: a job's reference, folders in its starting state, and what was torn."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from random import Random

import numpy as np
from safetensors.numpy import load_file
from stress.command import Fault, call
from stress.jobs import JOBS, Job, Outcome, visible
from stress.tally import Row

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
        self._references: dict[str, Reference] = {}

    def reference(self, name: str) -> Reference:
        if name not in self._references:
            job, folder = JOBS[name], self.fresh(name, "reference")
            started = time.monotonic()
            code = call(job.arguments(folder), log(folder), Fault(folder, change=-1))
            assert code == 0, log(folder).read_text()
            changes = int(Path(f"{folder}.count").read_text())
            outcome, seconds = job.outcome(folder), time.monotonic() - started
            assert outcome, f"{name} leaves nothing"
            largest = max((folder / file).stat().st_size for file in outcome)
            self._references[name] = Reference(job, outcome, seconds, changes, largest)
        return self._references[name]

    def fresh(self, name: str, what: str) -> Path:
        """A folder in which the job can start."""
        folder = self.work / f"{name} {what}".replace(" ", "-")
        folder.mkdir(parents=True)
        JOBS[name].prepare(folder)
        return folder


def log(folder: Path) -> Path:
    """Return the file of what commands in the folder printed."""
    return Path(f"{folder}.log")


class Trial:
    """One fault in one job: the folder that it works in, and the seeded draws of the fault.

    broken: half-written files that the fault left; result: what is there at the end.
    """

    def __init__(self, reference: Reference, folder: Path, draw: Random, seed: int) -> None:
        self.reference, self.job, self.folder = reference, reference.job, folder
        self.draw, self.seed, self.log = draw, seed, log(folder)
        self.arguments = reference.job.arguments(folder)
        self.broken: list[Path] = []
        self.result: Outcome | None = None

    @property
    def text(self) -> str:
        """What the commands printed."""
        return self.log.read_text()

    def call(self, fault: Fault | None = None) -> int:
        """Return the exit code of the command, which a fault may end."""
        return call(self.arguments, self.log, fault)

    def collect_torn(self) -> None:
        self.broken += torn(self.job, self.folder)

    def rerun(self) -> str:
        """Run the command again and keep its outcome. Return its log if it failed, else ''."""
        code = self.call()
        self.result = self.job.outcome(self.folder)
        return f"then exit {code}: {self.text}" if code else ""


class NotPossibleError(Exception):
    """This process may not cause the fault."""


Kind = Callable[[Trials, str, Iterable[int]], Row]
"""A kind of fault: injects it into a job of this name with each seed."""


def kind_of_fault(key: str, title: str) -> Callable[[Callable[[Trial], str]], Kind]:
    """Make a kind of fault of a function that causes one and returns what went wrong, or ''.

    Then the same command must end with the outcome of the reference, but for a function that sets
    the result itself. key: of folders and draws; title: in the table.
    """

    def decorate(cause: Callable[[Trial], str]) -> Kind:
        @wraps(cause)
        def inject(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
            reference, row = trials.reference(name), Row(title, name)
            for seed in seeds:
                folder, draw = trials.fresh(name, f"{key} {seed}"), Random(f"{key} {name} {seed}")
                trial = Trial(reference, folder, draw, seed)
                try:
                    failed = cause(trial)
                except NotPossibleError:
                    break
                if trial.result is None:
                    failed = trial.rerun() + failed
                trial.collect_torn()
                row.judge(reference.outcome, trial.result or {}, trial.broken, failed)
            return row

        return inject

    return decorate


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
