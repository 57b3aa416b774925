"""Numbers printed in papers: entries of kind `published`, shown apart and never ranked.

They come without outcomes, so nothing about them can be recomputed or paired. One JSON file of
leaderboard/entries each; the file name is the entry's name.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from fsbench.errors import ValidationFailed
from fsbench.results.files import read_record
from fsbench.schema import Name, Text
from fsbench.specs import Frozen

ENTRIES = Path(__file__).resolve().parent / "entries"


class PublishedCell(Frozen):
    """One printed number, as a fraction; ci95 is the printed half-width, null where none is."""

    task: Text = Field(description="data set, shots and adaptation; pool and size are not stated")
    table: Text
    mean: float = Field(ge=0, le=1)
    ci95: float | None = Field(None, ge=0, le=1)
    note: str = ""


class PublishedEntry(Frozen):
    """One row of a paper's tables."""

    schema_version: Literal[1] = 1
    kind: Literal["published"] = "published"
    name: Name
    method: Text
    source: Text
    link: Text
    backbone: Text
    protocol: Text
    source_accuracy: float | None = Field(None, ge=0, le=1, description="in-domain accuracy")
    cells: tuple[PublishedCell, ...]

    def cell(self, task: str) -> PublishedCell | None:
        return next((cell for cell in self.cells if cell.task == task), None)


@cache
def published() -> tuple[PublishedEntry, ...]:
    """All published entries, by name. Raises ValidationFailed naming a wrong file."""
    paths = sorted(ENTRIES.glob("*.json"), key=lambda path: path.stem)
    return tuple(read_published(path) for path in paths)


def read_published(path: Path) -> PublishedEntry:
    """One file; its name is the entry's, and no task stands there twice."""
    entry = read_record(path, PublishedEntry)
    tasks = [cell.task for cell in entry.cells]
    if entry.name != path.stem or len(set(tasks)) != len(tasks):
        raise ValidationFailed(
            f"{path}: name '{entry.name}', {len(tasks) - len(set(tasks))} repeated tasks",
            fix="name the file after the entry and state every task once",
        )
    return entry
