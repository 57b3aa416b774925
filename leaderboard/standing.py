"""From a board's entries to what is shown: columns, ranking, flags, published rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fsbench.records import EpisodeRecords
from fsbench.results.rules import Loaded
from fsbench.results.summary import outcomes
from fsbench.results.versions import by_version
from fsbench.specs import EpisodicSpec
from leaderboard.board import Board, Column, Entry, column_of
from leaderboard.published import PublishedEntry, published
from leaderboard.rank import Contenders, Outcomes, Ranking, rank


@dataclass(frozen=True)
class View:
    """One version of a board as people see it: columns of one protocol and input size.

    flags: entry -> why its numbers are not official; sources: entry -> in-domain accuracy; links:
    entry -> code or paper; published: entries that share a data set with the board; contenders:
    the outcomes that were ranked, for statistics of one's own.
    """

    name: str
    official: bool
    ranking: Ranking
    flags: dict[str, tuple[str, ...]]
    sources: dict[str, float | None]
    links: dict[str, str]
    published: tuple[PublishedEntry, ...]
    contenders: Contenders = field(default_factory=dict, repr=False, compare=False)


def views(folder: Path) -> tuple[View, ...]:
    """Read, verify and rank a board, each version of the evaluation on its own.

    An entry stands in a version if it holds a column of it. Raises ValidationFailed, UsageError.
    """
    board = Board.open(folder)
    entries = board.entries()
    columns = board.columns(entries)
    versions = by_version(column.name for column in columns).values()
    return tuple(
        of_version(board, entries, tuple(column for column in columns if column.name in names))
        for names in versions
    )


def of_version(board: Board, entries: Sequence[Entry], columns: tuple[Column, ...]) -> View:
    labels = label(columns)
    held = {
        entry.name: {
            labels[column_of(cell.result)]: paired_outcomes(cell)
            for cell in entry.cells
            if column_of(cell.result) in labels
        }
        for entry in entries
    }
    contenders = {name: outcomes for name, outcomes in held.items() if outcomes or not columns}
    datasets = {column.name.partition(":")[0] for column in columns}
    return View(
        name=board.file.name,
        official=board.file.official,
        ranking=rank(contenders, [labels[column] for column in columns]),
        flags={entry.name: entry_flags(entry) for entry in entries},
        sources={entry.name: entry.cells[0].result.backbone.source_accuracy for entry in entries},
        links={entry.name: entry.file.declaration.link for entry in entries},
        published=tuple(e for e in published() if shared_tasks(e, datasets)),
        contenders=contenders,
    )


def label(columns: tuple[Column, ...]) -> dict[Column, str]:
    """A distinct label per column: its name, and its digest where spec or images differ."""
    twice = Counter(column.name for column in columns)
    return {
        column: column.name + (f" #{column.digest()[:6]}" if twice[column.name] > 1 else "")
        for column in columns
    }


def paired_outcomes(cell: Loaded) -> Outcomes:
    """Outcomes under episode numbers, or under the place of the test image."""
    result, values = cell.result, outcomes(cell.records, cell.result.spec)
    if isinstance(result.spec, EpisodicSpec) and isinstance(cell.records, EpisodeRecords):
        draws = f"{result.dataset.images_hash} {result.spec.episode.digest()}"
        return Outcomes(cell.records.index, values, draws)
    return Outcomes(np.arange(values.size), values, f"{result.dataset.images_hash} test images")


def entry_flags(entry: Entry) -> tuple[str, ...]:
    """Flags of any cell, and the targets that the entry saw in pretraining."""
    found = sorted({flag for cell in entry.cells for flag in cell.result.flags})
    seen = [f"saw {target}" for target in entry.file.declaration.targets_seen]
    return (*found, *seen)


def shared_tasks(entry: PublishedEntry, datasets: set[str]) -> list[str]:
    """Tasks of a published entry on these data sets."""
    return [cell.task for cell in entry.cells if cell.task.partition(":")[0] in datasets]
