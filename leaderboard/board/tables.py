"""Which results of a board stand in which table: each holds the columns of exactly one track."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId
from fsbench.results.tracks import Data, Track, by_track
from leaderboard.board.columns import Column, column_of
from leaderboard.board.definition import BoardFile


@dataclass(frozen=True)
class Table:
    """Columns that one ranking goes over; a board without any has one table, of no track."""

    track: Track | None
    columns: tuple[Column, ...]

    @cached_property
    def names(self) -> frozenset[ColumnId]:
        return frozenset(column.name for column in self.columns)


def tables(file: BoardFile, results: Sequence[Result]) -> tuple[Table, ...]:
    """The tables that these results fill, or one empty one. Their order does not matter."""
    found = free(file, results) if file.version is None else versioned(file, results)
    return tuple(found)


def free(file: BoardFile, results: Sequence[Result]) -> list[Table]:
    """The columns named, a table a track; else all that are held, sorted, where a track that some
    network has only a part of the adaptations of has a table an adaptation."""
    if file.columns is not None:
        return by_tracks(file.columns) or [Table(None, ())]
    held = by_tracks(sorted({column_of(result) for result in results}, key=order))
    return [part for table in held for part in parts(table, results)] or [Table(None, ())]


def by_tracks(columns: Sequence[Column]) -> list[Table]:
    tracks = by_track(column.name for column in columns).items()
    return [Table(track, tuple(c for c in columns if c.name in names)) for track, names in tracks]


def parts(table: Table, results: Iterable[Result]) -> list[Table]:
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
        Table(
            table.track.model_copy(update={"adaptation": adaptation}),
            tuple(c for c in table.columns if c.name.task.probe or c.name.adaptation == adaptation),
        )
        for adaptation in sorted(tuned, key=lambda name: (-len(tuned[name]), name))
    ]


def order(column: Column) -> tuple[ColumnId, str, str]:
    """Return the sort key of a column."""
    return column.name, column.spec_digest, column.fingerprint or ""


def versioned(file: BoardFile, results: Iterable[Result]) -> list[Table]:
    """Tables that hold anything: official data with all columns of a track, others with those held.

    Entries that disagree on the images of a column stand in columns of their own.
    """
    held: dict[tuple[ColumnId, Data], set[Column]] = defaultdict(set)
    for result in results:
        if column := place(file, result):
            held[column.name, side(result)].add(column)
    found: dict[Track, list[Column]] = defaultdict(list)
    used = {Track.of(name, data) for name, data in held}
    sides: tuple[Data, ...] = ("official", "subset")
    for data in sides:
        for column in file.columns or ():
            own = sorted(held[column.name, data], key=order)
            spare = [column] if data == "official" else []
            found[Track.of(column.name, data)] += own or spare
    filled = [Table(track, tuple(columns)) for track, columns in found.items()]
    return [table for table in filled if table.track in used] or filled[:1]


def place(file: BoardFile, result: Result) -> Column | None:
    """The column, on its own images, that a result belongs to; None if the board has none."""
    column = column_of(result)
    if file.version is None:
        return column if file.columns is None or column in file.columns else None
    named = file.named.get(column.name)
    if named is None or not named.same_cell(result):
        return None
    return column if result.flags or named.official(result) else None


def side(result: Result) -> Data:
    """The part of a board with a version: any flag is a reason not to be official."""
    return "subset" if result.flags else "official"


def stands(file: BoardFile, table: Table, result: Result) -> bool:
    """Whether a result is ranked in a table."""
    data = table.track and table.track.data
    if result.column not in table.names or data not in {None, side(result)}:
        return False
    return place(file, result) in table.columns
