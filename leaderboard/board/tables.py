"""Which results of a board stand in which table: each holds the columns of exactly one track."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Result
from fsbench.core.tasks import ColumnId
from fsbench.results.tracks import Data, Track, by_track
from leaderboard.board.board import Board, BoardEntry
from leaderboard.board.definition import BoardFile, Column, identify_column
from leaderboard.board.published import PublishedEntry, load_published
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.ranking.tiers import Contenders, Ranking, rank_entries


@dataclass(frozen=True)
class TrackColumns:
    """Columns that one ranking goes over; a board without any has one table, of no track."""

    track: Track | None
    columns: tuple[Column, ...]

    @cached_property
    def names(self) -> frozenset[ColumnId]:
        return frozenset(column.name for column in self.columns)


def split_by_track(file: BoardFile, results: Sequence[Result]) -> tuple[TrackColumns, ...]:
    """The tables that these results fill, or one empty one. Their order does not matter."""
    found = split_free(file, results) if file.version is None else split_versioned(file, results)
    return tuple(found)


def split_free(file: BoardFile, results: Sequence[Result]) -> list[TrackColumns]:
    """The columns named, a table a track; else all that are held, sorted, where a track that some
    network has only a part of the adaptations of has a table an adaptation."""
    if file.columns is not None:
        return group_columns(file.columns) or [TrackColumns(None, ())]
    held = group_columns(sorted({identify_column(result) for result in results}, key=column_order))
    return [part for table in held for part in split_by_head(table, results)] or [
        TrackColumns(None, ())
    ]


def group_columns(columns: Sequence[Column]) -> list[TrackColumns]:
    tracks = by_track(column.name for column in columns).items()
    return [
        TrackColumns(track, tuple(c for c in columns if c.name in names)) for track, names in tracks
    ]


def split_by_head(table: TrackColumns, results: Iterable[Result]) -> list[TrackColumns]:
    """The table, or one an adaptation where a network lacks one of them: beside those that have all
    the network could not be ranked. Probes stand in each; what most networks have comes first."""
    tuned: dict[str, set[str]] = defaultdict(set)
    for result in results:
        if result.column in table.names and not result.task.probe:
            tuned[result.column.adaptation].add(result.backbone.weights_hash)
    networks = set().union(*tuned.values())
    if table.track is None or all(own == networks for own in tuned.values()):
        return [table]
    return [
        TrackColumns(
            table.track.model_copy(update={"adaptation": adaptation}),
            tuple(c for c in table.columns if c.name.task.probe or c.name.adaptation == adaptation),
        )
        for adaptation in sorted(tuned, key=lambda name: (-len(tuned[name]), name))
    ]


def column_order(column: Column) -> tuple[ColumnId, str, str]:
    """Return the sort key of a column."""
    return column.name, column.spec_digest, column.fingerprint or ""


def split_versioned(file: BoardFile, results: Iterable[Result]) -> list[TrackColumns]:
    """Tables that hold anything: official data with all columns of a track, others with those held.

    Entries that disagree on the images of a column stand in columns of their own.
    """
    held: dict[tuple[ColumnId, Data], set[Column]] = defaultdict(set)
    for result in results:
        if column := match_column(file, result):
            held[column.name, data_part(result)].add(column)
    found: dict[Track, list[Column]] = defaultdict(list)
    used = {Track.of(name, data) for name, data in held}
    sides: tuple[Data, ...] = ("official", "subset")
    for data in sides:
        for column in file.columns or ():
            own = sorted(held[column.name, data], key=column_order)
            spare = [column] if data == "official" else []
            found[Track.of(column.name, data)] += own or spare
    filled = [TrackColumns(track, tuple(columns)) for track, columns in found.items()]
    return [table for table in filled if table.track in used] or filled[:1]


def match_column(file: BoardFile, result: Result) -> Column | None:
    """The column, on its own images, that a result belongs to; None if the board has none."""
    column = identify_column(result)
    if file.version is None:
        return column if file.columns is None or column in file.columns else None
    named = file.named.get(column.name)
    if named is None or not named.same_cell(result):
        return None
    return column if result.flags or named.official(result) else None


def data_part(result: Result) -> Data:
    """The part of a board with a version: any flag is a reason not to be official."""
    return "subset" if result.flags else "official"


def is_ranked(file: BoardFile, table: TrackColumns, result: Result) -> bool:
    """Whether a result is ranked in a table."""
    data = table.track and table.track.data
    if result.column not in table.names or data not in {None, data_part(result)}:
        return False
    return match_column(file, result) in table.columns


CellFlags = Mapping[str, Mapping[str, tuple[str, ...]]]
SOURCE = "tinyimagenet"
"""What the backbones of the source papers were pretrained on."""


@dataclass(frozen=True)
class BoardTable:
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


def rank_board(
    folder: Path, cache: Path | None = None, report: Reporter = SILENT
) -> tuple[BoardTable, ...]:
    """Read, verify and rank a board, each track on its own.

    An entry stands in a view if it holds a column of it. Raises ValidationFailed, UsageError.
    """
    board = Board.open(folder)
    entries = board.entries(cache, report)
    results = [cell.result for entry in entries for cell in entry.cells]
    return tuple(
        rank_table(board.file, entries, each) for each in split_by_track(board.file, results)
    )


def rank_table(file: BoardFile, entries: Sequence[BoardEntry], table: TrackColumns) -> BoardTable:
    labels = label_columns(table.columns)
    held = {
        entry.name: {
            labels[identify_column(cell.result)]: cell
            for cell in entry.cells
            if is_ranked(file, table, cell.result)
        }
        for entry in entries
    }
    contenders = {
        name: {column: extract_outcomes(cell) for column, cell in own.items()}
        for name, own in held.items()
        if own or not table.columns
    }
    return BoardTable(
        name=file.title,
        official=file.official,
        track=table.track,
        ranking=rank_entries(contenders, list(labels.values())),
        flags={entry.name: list_flags(entry, table.track) for entry in entries},
        sources={entry.name: entry.cells[0].result.backbone.source_accuracy for entry in entries},
        links={entry.name: entry.file.declaration.link for entry in entries},
        published=select_published(table, entries),
        contenders=contenders,
        backbones={entry.name: find_backbone(entry) for entry in entries},
        cell_flags={
            entry.name: {
                c: (*cell.result.flags, *flag_targets_seen(entry))
                for c, cell in held[entry.name].items()
            }
            for entry in entries
        },
    )


def find_backbone(entry: BoardEntry) -> BackboneFacts:
    """Of the entry, with its training where any of its results knows it: older ones do not."""
    facts = [cell.result.backbone for cell in entry.cells]
    return next((known for known in facts if known.training), facts[0])


def select_published(
    table: TrackColumns, entries: Sequence[BoardEntry]
) -> tuple[PublishedEntry, ...]:
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
    sources = {name for entry in entries for name in find_backbone(entry).pretraining_data}
    sources |= {SOURCE} if track and track.data else set()
    found = (entry.about(datasets, sources, head) for entry in load_published())
    return tuple(entry for entry in found if entry.cells)


def mark(column: Column) -> ColumnId:
    """Return the identity of a column with the start of its digest."""
    return column.name.marked(f"#{column.digest()[:6]}")


def label_columns(columns: tuple[Column, ...]) -> dict[Column, str]:
    """A distinct label per column: its name, and its digest where spec or images differ."""
    twice = Counter(column.name for column in columns)
    return {
        column: str(mark(column) if twice[column.name] > 1 else column.name) for column in columns
    }


def list_flags(entry: BoardEntry, track: Track | None = None) -> tuple[str, ...]:
    """Flags of any cell, none on official data, targets that the entry saw in pretraining, and what
    came out when it was run again."""
    cells = () if track and track.data == "official" else entry.cells
    found = sorted({flag for cell in cells for flag in cell.result.flags})
    return (*found, *flag_targets_seen(entry), *((entry.badge.words,) if entry.badge else ()))


def flag_targets_seen(entry: BoardEntry) -> list[str]:
    """Targets that pretraining had before."""
    return [f"saw {target}" for target in entry.file.declaration.targets_seen]


def list_shared_tasks(entry: PublishedEntry, datasets: set[str]) -> list[str]:
    """Tasks of a published entry on these data sets, and in its own domain."""
    return [cell.task for cell in entry.cells if cell.in_domain or cell.dataset in datasets]
