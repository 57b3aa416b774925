"""The official boards as rows: what each version compares, track by track."""

from __future__ import annotations

from typing import Any

from fsbench.results.tracks import Track
from leaderboard.board.columns import Column
from leaderboard.board.definition import RULES, BoardFile
from leaderboard.board.official import official

HEADER = ("board", "date", "track", "columns", "data sets", "tasks")
NOTE = (
    "Every track stands twice: on official data, where an entry needs all its columns and has no "
    "flag, and as `subset`, which takes the same columns with flags. fsbench leaderboard init "
    "--board DIR --official NAME starts a board."
)


def rows() -> list[tuple[str, ...]]:
    """A row a track of every version, in the order of the files."""
    return [
        (file.title, file.date or "-", named(track), str(len(columns)), *held(columns))
        for file in official()
        for track, columns in by_track(file).items()
    ]


def by_track(file: BoardFile) -> dict[Track, list[Column]]:
    """The columns of each track on official data."""
    found: dict[Track, list[Column]] = {}
    for column in file.columns or ():
        found.setdefault(Track.of(column.name, "official"), []).append(column)
    return found


def named(track: Track) -> str:
    return track.label.removesuffix(" official")


def held(columns: list[Column]) -> tuple[str, str]:
    """Data sets and shapes, e.g. 'chestx, isic' and '5w1s, 5w5s'."""
    tasks = [column.name.task for column in columns]
    parts = ([task.dataset for task in tasks], [task.shape for task in tasks])
    sets, shapes = (", ".join(dict.fromkeys(part)) for part in parts)
    return sets, shapes


def as_json() -> list[dict[str, Any]]:
    """Every version whole, with its rule in words and its tracks."""
    return [
        {
            **file.model_dump(mode="json"),
            "title": file.title,
            "rule": RULES[file.ranking],
            "tracks": [
                {
                    **track.model_copy(update={"data": data}).model_dump(mode="json"),
                    "columns": [str(column.name) for column in columns],
                }
                for data in ("official", "subset")
                for track, columns in by_track(file).items()
            ],
        }
        for file in official()
    ]
