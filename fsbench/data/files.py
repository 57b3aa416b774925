"""Search for folders and images on disk, and readers of label files.

Names match in any letter case; hidden folders and those that start with `__` are ignored.
"""

import csv
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from fsbench.core.errors import DataError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""Suffixes that torchvision's ImageFolder accepts, compared in lower case."""

MAX_NAME = 255
"""Longest file name in bytes on common file systems."""


def list_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder by name. Raise DataError if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"cannot read the folder {folder}: {error.strerror}") from error


def _hidden(name: str) -> bool:
    return name.startswith((".", "__"))


def list_folders(folder: Path) -> list[Path]:
    """Return the visible folders directly below, links included, sorted by name."""
    entries = list_entries(folder)
    return require_utf8([Path(e.path) for e in entries if e.is_dir() and not _hidden(e.name)])


def require_utf8(paths: list[Path]) -> list[Path]:
    """Return the paths. Raise DataError naming one that is not UTF-8: ids and hashes need text."""
    for path in paths:
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"the file name {os.fsencode(path)!r} is not UTF-8",
                fix="rename it, e.g. with convmv -f latin1 -t utf8, or move it away",
            ) from error
    return paths


def stamp_file(path: Path) -> tuple[int, ...]:
    """Return size, mtime, ctime and inode of a regular file: equal while its content is unchanged.

    A file may be replaced at equal size and mtime (cp -p, rsync, unpacking); ctime and inode then
    differ. Raises OSError for a missing file, and for a pipe, socket or device, whose reading may
    never end.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a regular file but a folder, pipe, socket or device")
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def find_path(folder: Path, relative: str) -> Path | None:
    """Return the file or folder at `relative` ('/' as separator, any letter case), or None."""
    for part in Path(relative).parts:
        if not folder.is_dir():
            return None
        names = [entry.name for entry in list_entries(folder)]
        same = [name for name in names if name == part]
        same += [name for name in names if name.lower() == part.lower()]
        if not same:
            return None
        folder = folder / same[0]
    return folder


def is_inside(name: str) -> bool:
    """Return whether a relative path stays inside the folder that it is relative to."""
    path = PurePosixPath(name.replace("\\", "/"))
    longest = max((len(part.encode(errors="replace")) for part in path.parts), default=0)
    return not (path.is_absolute() or ".." in path.parts or "\0" in name) and longest <= MAX_NAME


def find_first(folder: Path, candidates: Iterable[str]) -> Path | None:
    """Return the first candidate that exists below the folder, or None."""
    paths = (find_path(folder, candidate) for candidate in candidates)
    return next((path for path in paths if path is not None), None)


def list_images(folder: Path) -> list[str]:
    """Return all images at any depth: sorted paths relative to the folder, '/' as separator.

    Raises DataError for a link to a folder that contains it, and for a name that is not UTF-8.
    """
    paths: list[Path] = []
    for here, below, names in os.walk(folder, followlinks=True):
        below[:] = [name for name in below if not _hidden(name)]
        for name in below:
            _refuse_loop(folder, Path(here), name)
        paths += [
            Path(here) / name
            for name in names
            if name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith(".")
        ]
    return sorted(path.relative_to(folder).as_posix() for path in require_utf8(paths))


def _refuse_loop(folder: Path, here: Path, name: str) -> None:
    """Raise DataError if here/name links to a folder that this walk of `folder` came through."""
    link = here / name
    if not link.is_symlink():
        return
    target = link.resolve()
    walked = [here, *(path for path in here.parents if path.is_relative_to(folder))]
    if any(path.resolve().is_relative_to(target) for path in walked):
        raise DataError(
            f"{link} links to {target}, which contains it: its images would count again and again",
            fix="remove the link",
        )


def find_class_tree(folder: Path, candidates: Sequence[str], classes: Sequence[str]) -> Path | None:
    """Return the first candidate folder that has a folder named like a class, or None."""
    for candidate in candidates:
        tree = find_path(folder, candidate)
        if tree and tree.is_dir() and {path.name for path in list_folders(tree)} & set(classes):
            return tree
    return None


def read_csv_columns(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the named columns of every row of a CSV file, stripped of outer spaces.

    A byte order mark is accepted. Raises DataError naming the file for a missing or repeated
    column, a short row, or an empty file.
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
