"""Progress and estimates of work: library code takes a Reporter and never prints."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsbench.core.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

Advance = Callable[[int], None]
VERBOSITY: ContextVar[int] = ContextVar("verbosity", default=0)
"""-1: results and errors alone; 0: progress; 1: details as well."""


class Reporter:
    """Receives what long work has to say; this one keeps it to itself."""

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        """Open a task of `total` units, `done` of them from an earlier run; yields advance(n)."""
        yield lambda n: None

    def log(self, text: str) -> None:
        """Log one line."""


SILENT = Reporter()


class Numbered(Reporter):
    """A Reporter that puts number and name of the current work before its tasks: [3/12] NAME."""

    def __init__(self, report: Reporter, total: int) -> None:
        self.report, self.total, self.number, self.name = report, total, 0, ""

    def log(self, text: str) -> None:
        self.report.log(text)

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        number = f"[{self.number}/{self.total}]" if self.number else ""
        title = " ".join(filter(None, (number, self.name, what)))
        with self.report.task(title, total, unit, done) as advance:
            yield advance


class ConsoleReporter(Reporter):
    """Progress with rate and time left on stderr: bars on a terminal, else lines, without rich."""

    def __init__(self, console: "Console | None" = None) -> None:
        if console is None and sys.stderr and sys.stderr.isatty():
            from rich.console import Console

            console = Console(stderr=True)
        self.console = console

    def log(self, text: str) -> None:
        if self.console:
            self.console.out(text, highlight=False)
        elif sys.stderr:  # None where it was closed before the start
            sys.stderr.write(f"{text}\n")

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        bars = make_bars(self.console) if self.console else None
        bar = bars.add_task(what, total=total, completed=done, state="") if bars else None
        pause = 1.0 if VERBOSITY.get() > 0 else 30.0
        started = shown = time.monotonic()
        count = done

        def describe(now: float) -> str:
            """e.g. '120/600, 230 episodes/s, 2 s left'."""
            rate = (count - done) / max(now - started, 1e-9)
            speed = f"{rate:.3g}" if rate < 1000 else f"{rate:.0f}"
            is_open = rate > 0 and count < total
            left = f", {format_duration((total - count) / rate)} left" if is_open else ""
            return f"{count}/{total}, {speed} {unit}/s{left}"

        def advance(n: int) -> None:
            nonlocal count, shown
            count += n
            now = time.monotonic()
            if bars and bar is not None:
                bars.update(bar, completed=count, state=describe(now))
            elif now - shown >= pause and count < total:
                shown = now
                self.log(f"{what}: {describe(now)}")

        with bars or nullcontext():
            yield advance
        if not bars:
            now = time.monotonic()
            self.log(f"{what}: {describe(now)}, {now - started:.1f} s")


def make_bars(console: "Console") -> "Progress":
    """Return bars with a name, and a text of their own as `state`."""
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    name = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    state = TextColumn("{task.fields[state]}", table_column=Column(no_wrap=True))
    columns = TextColumn("{task.description}", markup=False, table_column=name), BarColumn(10)
    return Progress(*columns, state, console=console, expand=True)


def console_reporter() -> Reporter:
    """Return the reporter of commands; it is silent under --quiet."""
    return SILENT if VERBOSITY.get() < 0 else ConsoleReporter()


HOUR = 3600.0


@dataclass(frozen=True)
class WorkEstimate:
    """Estimated cost of work, in words, for one process; steps: of the optimizer; disk: bytes."""

    what: str = ""
    seconds: float = 0.0
    steps: int = 0
    disk: float = 0

    def __str__(self) -> str:
        steps = f"{self.steps} steps, " if self.steps else ""
        disk = f", {self.disk / 1e6:.0f} MB on disk" if self.disk else ""
        work = f"{self.what}: " if self.what else ""
        return f"{work}{steps}about {format_duration(self.seconds)}{disk}"


def require_consent(
    who: str, estimates: Sequence[WorkEstimate], yes: bool, log: Callable[[str], None], fix: str
) -> None:
    """Log how long work on `who` takes. Raise UsageError with `fix` above an hour unless `yes`."""
    text = f"{who}: {'; '.join(map(str, estimates))}"
    if sum(estimate.seconds for estimate in estimates) > HOUR and not yes:
        raise UsageError(text, fix=f"add --yes (yes=True) to start it, or {fix}")
    if estimates:
        log(text)


def format_count(n: int, noun: str) -> str:
    """Return a number with its noun, e.g. 1 entry or 2 entries."""
    if n == 1:
        return f"1 {noun}"
    stem = re.sub("([^aeiou])y$", r"\1ie", noun)
    return f"{n} {stem}{'es' if re.search('(s|x|tch)$', noun) else 's'}"


def format_duration(seconds: float) -> str:
    """Return e.g. 40 s, 12 min or 5.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"
