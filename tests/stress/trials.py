"""Where faults are tried: a job's reference, folders in its starting state, and what is counted."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from safetensors.numpy import load_file
from stress.command import Fault, call
from stress.jobs import JOBS, Outcome

from fsbench.results.entry import ENTRY_FILE, read_entry


@dataclass(frozen=True)
class Reference:
    """A run without faults: what it left, how long it took (s), how many changes it made, and the
    bytes of its largest file."""

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
            job, folder = JOBS[name], self.prepare(name, "reference")
            started = time.monotonic()
            code = call(job.arguments(folder), log(folder), Fault(folder, change=-1))
            assert code == 0, log(folder).read_text()
            changes = int(Path(f"{folder}.count").read_text())
            outcome, seconds = job.outcome(folder), time.monotonic() - started
            assert outcome, f"{name} leaves nothing"
            largest = max((folder / file).stat().st_size for file in outcome)
            self._references[name] = Reference(outcome, seconds, changes, largest)
        return self._references[name]

    def prepare(self, name: str, what: str) -> Path:
        """Return a new folder in which the job can start."""
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

    def __init__(self, name: str, reference: Reference, folder: Path, draw: Random, seed: int):
        self.name, self.job, self.reference = name, JOBS[name], reference
        self.folder, self.draw, self.seed, self.log = folder, draw, seed, log(folder)
        self.arguments = self.job.arguments(folder)
        self.broken: list[Path] = []
        self.result: Outcome | None = None

    @property
    def text(self) -> str:
        """What the commands printed."""
        return self.log.read_text()

    def call(self, fault: Fault | None = None, *more: str) -> int:
        """Return the exit code of the command, which a fault may end. more: arguments."""
        return call([*self.arguments, *more], self.log, fault)

    def collect_torn(self) -> None:
        """Remember the visible files that cannot be read."""
        self.broken += [file for file in self.job.files(self.folder) if not is_readable(file)]

    def rerun(self) -> str:
        """Run the command again and keep its outcome. Return its log if it failed, else ''."""
        code = self.call()
        self.result = self.job.outcome(self.folder)
        return f"then exit {code}: {self.text}" if code else ""

    def judge_end(self, code: int, *allowed: int) -> str:
        """Return '' if the command ended well or with an error of ours, else code and log."""
        is_clean = code == 0 or "error: " in self.text
        is_clean &= code in allowed and "Traceback" not in self.text
        return "" if is_clean else f"exit {code}: {self.text}"


class NotPossibleError(Exception):
    """This process may not cause the fault."""


@dataclass
class Row:
    """One kind of fault in one job.

    survived: faults after which the same command ended with the same outcome; lost, wrong: files of
    the outcome that were missing or other then; torn: half-written files that a reader could see.
    """

    fault: str
    job: str
    injected: int = 0
    survived: int = 0
    lost: int = 0
    wrong: int = 0
    torn: int = 0
    said: list[str] = field(default_factory=list)

    def judge(self, trial: Trial, failed: str) -> None:
        """Count one fault. failed: what else went wrong."""
        expected, result, torn = trial.reference.outcome, trial.result or {}, trial.broken
        lost = expected.keys() - result.keys()
        wrong = {name for name, digest in result.items() if expected.get(name) != digest}
        self.injected += 1
        self.lost += len(lost)
        self.wrong += len(wrong)
        self.torn += len(torn)
        if lost or wrong or torn or failed:
            text = f"{failed} lost {sorted(lost)} wrong {sorted(wrong)} torn {torn}"
            self.said.append(text[:2000])
        else:
            self.survived += 1

    @property
    def is_whole(self) -> bool:
        return self.injected == self.survived > 0


@dataclass(frozen=True)
class Kind:
    """A kind of fault. is_frequent: whether it is injected as often as kills are.

    cause: causes one and returns what went wrong, or ''. Then the same command must end with the
    outcome of the reference, but for a function that sets the result itself.
    """

    title: str
    jobs: tuple[str, ...]
    is_frequent: bool
    cause: Callable[[Trial], str]

    def inject(self, trials: Trials, name: str, seeds: Iterable[int]) -> Row:
        """Cause the fault in a job of this name with each seed, as far as this process may."""
        reference, row, key = trials.reference(name), Row(self.title, name), self.cause.__name__
        for seed in seeds:
            folder, draw = trials.prepare(name, f"{key} {seed}"), Random(f"{key} {name} {seed}")
            trial = Trial(name, reference, folder, draw, seed)
            try:
                failed = self.cause(trial)
            except NotPossibleError:
                continue
            if trial.result is None:
                failed = trial.rerun() + failed
            trial.collect_torn()
            row.judge(trial, failed)
        return row


KINDS: list[Kind] = []


def kind_of_fault(
    title: str, *jobs: str, is_frequent: bool = False
) -> Callable[[Callable[[Trial], str]], Kind]:
    """Add a function that causes a fault to the kinds. title: in the table."""

    def add(cause: Callable[[Trial], str]) -> Kind:
        KINDS.append(Kind(title, jobs, is_frequent, cause))
        return KINDS[-1]

    return add


def is_readable(file: Path) -> bool:
    """Return whether a file is whole, as far as the reader of its kind can tell."""
    try:
        if file.name == ENTRY_FILE:
            read_entry(file.parent)
        elif file.suffix in (".json", ".jsonl"):
            text = file.read_text()
            for part in [text] if file.suffix == ".json" else text.splitlines():
                json.loads(part)
        elif file.suffix == ".safetensors":
            load_file(file)
        elif file.suffix == ".npy":
            np.load(file)
        elif file.suffix == ".html":
            return file.read_text().rstrip().endswith("</html>")
    except Exception:  # noqa: BLE001 - every reader has errors of its own
        return False
    return True
