"""Columns of a board, split into tables by track.

Which columns a table has never depends on an entry that comes later: board.json names them, or the
first entry of a track has them. All others are in tables of their own that rank nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId, Data, Track, by_track
from leaderboard.record import BoardFile, Column, identify_column

PROBES = "probes"
"""Names the table of probes beside tables of episodes."""


@dataclass(frozen=True)
class TrackColumns:
    """The columns of one table, all of one track; a board without columns has one, track None."""

    track: Track | None
    columns: tuple[Column, ...]

    @cached_property
    def members(self) -> frozenset[Column]:
        return frozenset(self.columns)

    @property
    def is_extra(self) -> bool:
        """Return whether the columns stand outside of the ranking."""
        return self.track is not None and self.track.extra

    @classmethod
    def extra(cls, track: Track | None, columns: Sequence[Column]) -> "TrackColumns":
        """Return a table outside of the ranking."""
        marked = track and track.model_copy(update={"extra": True})
        return cls(marked, tuple(columns))


def track_key(file: BoardFile, column: ColumnId) -> tuple[Track, bool]:
    """Return the track of a column on this board, and whether it is of probes."""
    track = Track.of(column)
    if file.heads == "apart":
        track = track.model_copy(update={"adaptation": column.adaptation})
    return track, column.task.probe is not None


def complete_columns(file: BoardFile, results: Sequence[Sequence[Result]]) -> BoardFile:
    """Return the definition with the columns of tracks that it does not name.

    results: of each entry, in the order in which they came: the first one of a track decides them.
    A board with a version names all of its columns.
    """
    if file.version is not None:
        return file
    columns, seen = list(file.columns or ()), set(file.columns or ())
    for of_entry in results:
        fresh = {identify_column(result) for result in of_entry} - seen
        if not fresh:
            continue
        tracks = {track_key(file, column.name) for column in columns}
        new = first_of_names(sorted(fresh, key=column_order))
        columns += [column for column in new if track_key(file, column.name) not in tracks]
        seen |= fresh
    named = tuple(sorted(columns, key=column_order)) or None
    return file if named == file.columns else file.model_copy(update={"columns": named})


def first_of_names(columns: Iterable[Column]) -> list[Column]:
    """Return one column of each name, the first one."""
    by_name: dict[ColumnId, Column] = {}
    for column in columns:
        by_name.setdefault(column.name, column)
    return list(by_name.values())


def split_by_track(file: BoardFile, results: Sequence[Sequence[Result]]) -> list[TrackColumns]:
    """Return the tables of a board, or one empty table.

    results: of each entry, in the order in which they came; the tables of a board whose columns are
    complete do not depend on them but for those outside of the ranking.
    """
    if file.version is not None:
        return split_versioned(file, results)
    named = list(file.columns or ())
    measured = {identify_column(result) for of_entry in results for result in of_entry}
    extra = sorted(measured - set(named), key=column_order)
    tables = [t for table in group_columns(named) for t in split_by_head(file, table)]
    tables += [TrackColumns.extra(table.track, table.columns) for table in group_columns(extra)]
    return tables or [TrackColumns(None, ())]


def group_columns(columns: Sequence[Column]) -> list[TrackColumns]:
    """Return one table per track; probes stand apart."""
    probes = [c for c in columns if c.name.task.probe]
    episodes = [column for column in columns if column not in probes]
    beside_episodes = {"adaptation": PROBES} if episodes else {}
    tables = []
    for part, update in ((episodes, {}), (probes, beside_episodes)):
        for track, names in by_track(column.name for column in part).items():
            of_track = tuple(column for column in part if column.name in names)
            tables.append(TrackColumns(track.model_copy(update=update), of_track))
    return tables


def split_by_head(file: BoardFile, table: TrackColumns) -> list[TrackColumns]:
    """Return one table per head, if heads stand apart, linear first; kinds of probe are heads."""
    names = dict.fromkeys(column.name.adaptation for column in table.columns)
    heads = sorted(names, key=lambda head: head != "linear")
    if table.track is None or file.heads == "together" or len(heads) < 2:
        return [table]
    return [
        TrackColumns(
            table.track.model_copy(update={"adaptation": head}),
            tuple(c for c in table.columns if c.name.adaptation == head),
        )
        for head in heads
    ]


def split_versioned(file: BoardFile, results: Sequence[Sequence[Result]]) -> list[TrackColumns]:
    """Return the tables of a board with a version that contain any result.

    A table on official data has all columns of its track, on the images of the first entry; one of
    flagged results has the columns of its first entry. All other results stand outside.
    """
    chosen: dict[Track, dict[ColumnId, Column]] = {}
    for named in file.columns or ():
        chosen.setdefault(Track.of(named.name, "official"), {})[named.name] = named
    measured: dict[Track, dict[Column, None]] = {}
    for of_entry in results:
        fresh: dict[Track, dict[ColumnId, Column]] = {}
        for result in of_entry:
            if (matched := match_column(file, result)) is not None:
                track = Track.of(matched.name, classify_data(result))
                measured.setdefault(track, {})[matched] = None
                fresh.setdefault(track, {}).setdefault(matched.name, matched)
        for track, columns in fresh.items():
            decided = chosen.setdefault(track, columns)
            if track.data == "official":  # named by the board, without images until measured
                decided |= {n: c for n, c in columns.items() if decided[n] in file.compared}
    tables = []
    for track, by_name in chosen.items():
        ranked = tuple(sorted(by_name.values(), key=column_order))
        extra = tuple(sorted(measured.get(track, {}).keys() - set(ranked), key=column_order))
        tables += [TrackColumns(track, ranked)] if track in measured else []
        tables += [TrackColumns.extra(track, extra)] if extra else []
    if not tables:
        track, by_name = next(iter(chosen.items()))
        tables = [TrackColumns(track, tuple(sorted(by_name.values(), key=column_order)))]
    return tables


def column_order(column: Column) -> tuple[ColumnId, str, str]:
    """Return the sort key of a column."""
    return column.name, column.spec_digest, column.fingerprint or ""


def match_column(file: BoardFile, result: Result) -> Column | None:
    """Return the column of a result, with the result's images; None if the board names none."""
    column = identify_column(result)
    if file.version is None:
        return column if column in file.compared else None
    named = file.named.get(column.name)
    if named is None or not named.has_spec_of(result):
        return None
    return column if result.flags or named.has_images_of(result) else None


def classify_data(result: Result) -> Data:
    """Return the part of a board with a version: a result with any flag is not official."""
    return "subset" if result.flags else "official"


def find_ranked_column(file: BoardFile, table: TrackColumns, result: Result) -> Column | None:
    """Return the column of a table that a result is in; None if it is in none."""
    data = table.track and table.track.data
    if data not in {None, classify_data(result)}:
        return None
    column = match_column(file, result) if data else identify_column(result)
    return column if column in table.members else None


def label_columns(columns: tuple[Column, ...]) -> dict[Column, str]:
    """Return a distinct label per column: its name, marked by the start of its digest if needed."""
    counts = Counter(column.name for column in columns)
    marked = {column: column.name.marked(f"#{column.digest()[:6]}") for column in columns}
    return {c: str(marked[c] if counts[c.name] > 1 else c.name) for c in columns}
