"""How long work reports itself: library code takes a Reporter and never prints.

The command line passes one that draws rich progress bars on a terminal and writes plain lines
elsewhere (fsbench/cli/console.py); `SILENT` is the default for everyone else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]


class Reporter(Protocol):
    """Receives what long work has to say."""

    def task(
        self, what: str, total: int, unit: str, done: int = 0
    ) -> AbstractContextManager[Advance]:
        """Open a task of `total` units, `done` of them from an earlier run; yields advance(n)."""

    def log(self, text: str) -> None:
        """One line worth keeping."""


class Silent:
    """A Reporter that says nothing."""

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        yield lambda n: None

    def log(self, text: str) -> None:
        return None


SILENT: Reporter = Silent()
