"""CSV label files: columns by name, byte order marks accepted, errors that name file and column."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from fsbench.core.errors import DataError


def read_columns(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The named columns of every row, in the order asked for, stripped of outer spaces.

    Raises DataError naming the file for a missing or repeated column, a short row, or no rows.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"cannot read the label file {path}: {error}",
            fix="use the official file, as comma-separated UTF-8 text",
        ) from error
    header = [name.strip() for name in rows[0]] if rows else []
    if missing := [name for name in columns if header.count(name) != 1]:
        raise DataError(
            f"{path} lacks the columns {', '.join(missing)}; found: {', '.join(header) or 'none'}",
            fix=f"use the official file, with the columns {', '.join(columns)}, each once",
        )
    places = [header.index(name) for name in columns]
    return [_pick(row, places, path, line) for line, row in enumerate(rows[1:], 2) if row]


def _pick(row: list[str], places: list[int], path: Path, line: int) -> tuple[str, ...]:
    if len(row) <= max(places):
        raise DataError(
            f"{path}, row {line} has {len(row)} fields, too few",
            fix="the file is cut or edited: fetch it again",
        )
    return tuple(row[place].strip() for place in places)
