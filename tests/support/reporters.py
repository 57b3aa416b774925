"""A reporter that remembers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Recorder:
    """A Reporter that keeps log lines, and tasks as [what, total, done before, advanced]."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tasks: list[list[Any]] = []

    def log(self, text: str) -> None:
        self.lines.append(text)

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Any]:
        task: list[Any] = [what, total, done, 0]
        self.tasks.append(task)

        def advance(n: int) -> None:
            task[3] += n

        yield advance

    @property
    def text(self) -> str:
        return "\n".join(self.lines)
