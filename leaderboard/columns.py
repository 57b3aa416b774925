"""Columns of a board, split into tables by track.

Which columns a table has never depends on an entry that comes later: board.json names them, or the
first entry of a track has them. All others are in tables of their own that rank nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId, Data, Track
from leaderboard.record import BoardFile, Column, identify_column

PROBES = "probes"
"""Names the table of probes on a board whose heads are together."""
ColumnsByTrack = dict[Track, dict[ColumnId, Column]]


@dataclass(frozen=True)
class TrackColumns:
    """The columns of one table, all of one track; a board without columns has one, track None."""

    track: Track | None
    columns: tuple[Column, ...]

    @cached_property
    def labels(self) -> dict[Column, str]:
        """A distinct label per column: its name, marked by the start of its digest if needed."""
        counts = Counter(column.name for column in self.columns)
        marked = {c: c.name.marked(f"#{c.digest()[:6]}") for c in self.columns}
        return {c: str(marked[c] if counts[c.name] > 1 else c.name) for c in self.columns}

    @property
    def is_extra(self) -> bool:
        """Return whether the columns are outside of the ranking."""
        return self.track is not None and self.track.extra

    def find(self, result: Result) -> Column | None:
        """Return the column that a result is in; None if it is in none."""
        column, data = identify_column(result), self.track and self.track.data
        is_part = data in {None, classify_data(result)}
        return column if is_part and column in self.labels else None


def assign_track(file: BoardFile, column: ColumnId, data: Data = "official") -> Track:
    """Return the track of a column on this board. data: the part, on a board with a version."""
    if file.version is not None:
        return Track.of(column, data)
    head = PROBES if column.task.probe else None
    head = column.adaptation if file.heads == "apart" else head
    return Track.of(column).model_copy(update={"adaptation": head})


def complete_columns(file: BoardFile, results: Sequence[Sequence[Result]]) -> BoardFile:
    """Return the definition with the columns of tracks that it does not name.

    results: as in `decide_columns`. A board with a version names all of its columns.
    """
    if file.version is not None:
        return file
    chosen, _ = decide_columns(file, results)
    columns = {*(file.columns or ()), *(c for by_name in chosen.values() for c in by_name.values())}
    named = tuple(sorted(columns, key=column_order)) or None
    return file if named == file.columns else file.model_copy(update={"columns": named})


def split_by_track(file: BoardFile, results: Sequence[Sequence[Result]]) -> list[TrackColumns]:
    """Return the tables of a board that contain any result, or one without.

    results: as in `decide_columns`. Linear heads come first, probes and extra columns last.
    """
    chosen, measured = decide_columns(file, results)
    ranked = {track: {*by_name.values()} for track, by_name in chosen.items()}
    shown = {track: columns for track, columns in ranked.items() if track in measured}
    for track, columns in [*shown.items()]:
        if rest := measured[track] - columns:
            shown[track.model_copy(update={"extra": True})] = rest
    shown = shown or dict([*ranked.items()][:1])
    tracks = sorted(shown, key=track_order)
    tables = [TrackColumns(t, tuple(sorted(shown[t], key=column_order))) for t in tracks]
    return tables or [TrackColumns(None, ())]


def decide_columns(
    file: BoardFile, results: Iterable[Sequence[Result]]
) -> tuple[ColumnsByTrack, dict[Track, set[Column]]]:
    """Return the ranked columns of each track, and all of its measured columns.

    The file names the ranked ones; on other tracks they are those of the first entry. A column of
    an official board gets the images of its first result. results: of each entry, in the order in
    which entries came.
    """
    chosen: ColumnsByTrack = {}
    for named in file.columns or ():
        chosen.setdefault(assign_track(file, named.name), {})[named.name] = named
    measured: dict[Track, set[Column]] = {}
    handled: set[tuple[Column, Data]] = set()
    for of_entry in results:
        fresh = {
            (column, classify_data(result))
            for result in of_entry
            if (column := find_column(file, result)) is not None
        } - handled
        columns_by_track: ColumnsByTrack = {}
        for column, data in sorted(fresh, key=lambda pair: column_order(pair[0])):
            track = assign_track(file, column.name, data)
            measured.setdefault(track, set()).add(column)
            columns_by_track.setdefault(track, {}).setdefault(column.name, column)
        for track, columns in columns_by_track.items():
            ranked = chosen.setdefault(track, columns)
            if track.data == "official":  # named by the board, without images until measured
                ranked |= {n: c for n, c in columns.items() if ranked[n] in file.compared}
        handled |= fresh
    return chosen, measured


def column_order(column: Column) -> tuple[ColumnId, str, str]:
    """Return the sort key of a column."""
    return column.name, column.spec_digest, column.fingerprint or ""


def track_order(track: Track) -> tuple[bool, bool, bool, bool]:
    """Return the sort key of a track; tracks with equal keys keep their order."""
    is_linear = (track.adaptation or "").startswith("linear")
    return track.extra, track.data == "subset", not track.protocol, not is_linear


def find_column(file: BoardFile, result: Result) -> Column | None:
    """Return the column of a result, with the result's images.

    It is None if a board with a version names no column of this spec and these images.
    """
    column = identify_column(result)
    if file.version is None:
        return column
    named = file.named.get(column.name)
    if named is None or not named.has_spec_of(result):
        return None
    return column if result.flags or named.has_images_of(result) else None


def classify_data(result: Result) -> Data:
    """Return the part of a board with a version: a result with any flag is not official."""
    return "subset" if result.flags else "official"
