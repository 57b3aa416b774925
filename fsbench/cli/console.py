"""What people see: progress and log lines on stderr, one table or JSON on stdout."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from fsbench.core.progress import Advance, Reporter

PLAIN_EVERY = 10.0
"""Seconds between two progress lines of one task where stderr is no terminal."""

UNFOLDED = 100_000
"""Characters that no table exceeds."""


class Plain:
    """Progress as plain lines with rate and time left, for logs and pipes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock

    def log(self, text: str) -> None:
        typer.echo(text, err=True)

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        started = shown = self.clock()
        count = done

        def advance(n: int) -> None:
            nonlocal count, shown
            count += n
            now = self.clock()
            if now - shown >= PLAIN_EVERY and count < total:
                shown = now
                self.log(line(what, count, total, unit, (count - done) / (now - started)))

        yield advance
        seconds = max(self.clock() - started, 1e-9)
        self.log(f"{line(what, count, total, unit, (count - done) / seconds)}, {seconds:.1f} s")


def line(what: str, count: int, total: int, unit: str, rate: float) -> str:
    """e.g. 'features eurosat: 512/1000 images, 230 images/s, 2 s left'."""
    left = f", {(total - count) / rate:.0f} s left" if rate > 0 and count < total else ""
    return f"{what}: {count}/{total} {unit}, {rate:.3g} {unit}/s{left}"


class Bars:
    """Progress as rich bars with rate and time left, for terminals."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)

    def log(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        started = time.monotonic()
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console) as bars:
            bar = bars.add_task(what, total=total, completed=done, rate=unit)
            count = 0

            def advance(n: int) -> None:
                nonlocal count
                count += n
                rate = count / max(time.monotonic() - started, 1e-9)
                bars.update(bar, advance=n, rate=f"{rate:.3g} {unit}/s")

            yield advance


def reporter() -> Reporter:
    """Bars on a terminal, plain lines elsewhere."""
    return Bars() if sys.stderr.isatty() else Plain()


def log(text: str) -> None:
    """One line on stderr."""
    typer.echo(text, err=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One table on stdout; cells are plain text, never markup. Numbers are right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for i, column in enumerate(columns):
        cells = [row[i] for row in rows]
        numeric = bool(cells) and all(cell[:1] in "0123456789-+<" for cell in cells)
        drawn.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    # A pipe has no width: print every column whole rather than folding at 80 characters.
    whole = Console(width=UNFOLDED).measure(drawn).maximum
    Console(width=None if Console().is_terminal else whole).print(drawn)


def emit_json(value: Any) -> None:
    """JSON on stdout, keys in the order of the record."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))
