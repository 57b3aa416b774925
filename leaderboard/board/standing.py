"""From a board's entries to what is shown: columns, ranking, flags, published rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts
from fsbench.core.tasks import ColumnId
from fsbench.results.tracks import Track
from leaderboard.board.board import Board, Entry
from leaderboard.board.columns import Column, column_of
from leaderboard.board.definition import BoardFile
from leaderboard.board.published import PublishedEntry, published
from leaderboard.board.tables import Table, stands, tables
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.ranking.rank import Contenders, Ranking, rank

CellFlags = Mapping[str, Mapping[str, tuple[str, ...]]]
SOURCE = "tinyimagenet"
"""What the backbones of the source papers were pretrained on."""


@dataclass(frozen=True)
class View:
    """One track of a board as people see it; None for a board without columns.

    flags: entry -> why its numbers are not official; sources: entry -> in-domain accuracy; links:
    entry -> code or paper; published: entries that share a data set with the board; contenders:
    the outcomes that were ranked, for statistics of one's own; backbones: entry -> its facts;
    cell_flags: entry -> column -> why that number is not official.
    """

    name: str
    official: bool
    ranking: Ranking
    flags: dict[str, tuple[str, ...]]
    sources: dict[str, float | None]
    links: dict[str, str]
    published: tuple[PublishedEntry, ...]
    contenders: Contenders = field(default_factory=dict, repr=False, compare=False)
    track: Track | None = None
    backbones: dict[str, BackboneFacts] = field(default_factory=dict, repr=False, compare=False)
    cell_flags: CellFlags = field(default_factory=dict, repr=False, compare=False)


def views(folder: Path, cache: Path | None = None, report: Reporter = SILENT) -> tuple[View, ...]:
    """Read, verify and rank a board, each track on its own.

    An entry stands in a view if it holds a column of it. Raises ValidationFailed, UsageError.
    """
    board = Board.open(folder)
    entries = board.entries(cache, report)
    results = [cell.result for entry in entries for cell in entry.cells]
    return tuple(of_table(board.file, entries, each) for each in tables(board.file, results))


def of_table(file: BoardFile, entries: Sequence[Entry], table: Table) -> View:
    labels = label(table.columns)
    held = {
        entry.name: {
            labels[column_of(cell.result)]: cell
            for cell in entry.cells
            if stands(file, table, cell.result)
        }
        for entry in entries
    }
    contenders = {
        name: {column: extract_outcomes(cell) for column, cell in own.items()}
        for name, own in held.items()
        if own or not table.columns
    }
    return View(
        name=file.title,
        official=file.official,
        track=table.track,
        ranking=rank(contenders, list(labels.values())),
        flags={entry.name: entry_flags(entry, table.track) for entry in entries},
        sources={entry.name: entry.cells[0].result.backbone.source_accuracy for entry in entries},
        links={entry.name: entry.file.declaration.link for entry in entries},
        published=beside(table, entries),
        contenders=contenders,
        backbones={entry.name: backbone(entry) for entry in entries},
        cell_flags={
            entry.name: {
                c: (*cell.result.flags, *seen(entry)) for c, cell in held[entry.name].items()
            }
            for entry in entries
        },
    )


def backbone(entry: Entry) -> BackboneFacts:
    """Of the entry, with its training where any of its results knows it: older ones do not."""
    facts = [cell.result.backbone for cell in entry.cells]
    return next((known for known in facts if known.training), facts[0])


def beside(table: Table, entries: Sequence[Entry]) -> tuple[PublishedEntry, ...]:
    """Published entries on the data sets of a table, where papers may have measured: their
    episodes are classic, inductive and on official data, and more they do not say. Accuracies in
    the domain of pretraining stand beside entries that were pretrained on the same."""
    track = table.track
    if track and (track.transductive or track.groups == "disjoint" or track.data == "subset"):
        return ()
    head = None
    if track and track.adaptation and table.columns:
        task = table.columns[0].name.task
        head = task.head or task.shape
    datasets = {column.name.task.dataset for column in table.columns}
    sources = {name for entry in entries for name in backbone(entry).pretraining_data}
    sources |= {SOURCE} if track and track.data else set()
    found = (entry.about(datasets, sources, head) for entry in published())
    return tuple(entry for entry in found if entry.cells)


def mark(column: Column) -> ColumnId:
    """Return the identity of a column with the start of its digest."""
    return column.name.marked(f"#{column.digest()[:6]}")


def label(columns: tuple[Column, ...]) -> dict[Column, str]:
    """A distinct label per column: its name, and its digest where spec or images differ."""
    twice = Counter(column.name for column in columns)
    return {
        column: str(mark(column) if twice[column.name] > 1 else column.name) for column in columns
    }


def entry_flags(entry: Entry, track: Track | None = None) -> tuple[str, ...]:
    """Flags of any cell, none on official data, targets that the entry saw in pretraining, and what
    came out when it was run again."""
    cells = () if track and track.data == "official" else entry.cells
    found = sorted({flag for cell in cells for flag in cell.result.flags})
    return (*found, *seen(entry), *((entry.badge.words,) if entry.badge else ()))


def seen(entry: Entry) -> list[str]:
    """Targets that pretraining had before."""
    return [f"saw {target}" for target in entry.file.declaration.targets_seen]


def shared_tasks(entry: PublishedEntry, datasets: set[str]) -> list[str]:
    """Tasks of a published entry on these data sets, and in its own domain."""
    return [cell.task for cell in entry.cells if cell.in_domain or cell.dataset in datasets]
