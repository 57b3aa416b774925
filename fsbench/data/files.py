"""Finding folders and images on disk: names match in any case, hidden and helper folders never."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from fsbench.core.errors import DataError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""What torchvision's ImageFolder accepts, compared in lower case."""

MAX_NAME = 255
"""Bytes of a name on the usual file systems; a longer one is an error of the system."""


def listing(folder: Path) -> list[os.DirEntry[str]]:
    """Entries sorted by name. Raises DataError where the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"cannot read the folder {folder}: {error.strerror}") from error


def _hidden(name: str) -> bool:
    return name.startswith((".", "__"))


def folders(folder: Path) -> list[Path]:
    """Visible folders directly below, links included, sorted by name."""
    return [Path(e.path) for e in listing(folder) if e.is_dir() and not _hidden(e.name)]


def descend(folder: Path, relative: str) -> Path | None:
    """The file or folder at `relative` ('/' between parts, any letter case), or None."""
    for part in Path(relative).parts:
        if not folder.is_dir():
            return None
        names = [entry.name for entry in listing(folder)]
        same = [name for name in names if name == part]
        same += [name for name in names if name.lower() == part.lower()]
        if not same:
            return None
        folder = folder / same[0]
    return folder


def stays_inside(name: str) -> bool:
    """Whether a path that some file names stays in the folder that it is relative to."""
    path = PurePosixPath(name.replace("\\", "/"))
    longest = max((len(part.encode(errors="replace")) for part in path.parts), default=0)
    return not (path.is_absolute() or ".." in path.parts or "\0" in name) and longest <= MAX_NAME


def first(folder: Path, candidates: Iterable[str]) -> Path | None:
    """The first candidate that exists below the folder, or None."""
    found = (descend(folder, candidate) for candidate in candidates)
    return next((path for path in found if path is not None), None)


def images_below(folder: Path) -> list[str]:
    """All images at any depth, as sorted paths relative to the folder with '/' as separator."""
    paths: list[str] = []
    for here, below, names in os.walk(folder, followlinks=True):
        below[:] = [name for name in below if not _hidden(name)]
        paths += [
            (Path(here) / name).relative_to(folder).as_posix()
            for name in names
            if name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith(".")
        ]
    return sorted(paths)


def class_tree(folder: Path, candidates: Sequence[str], classes: Sequence[str]) -> Path | None:
    """The first candidate folder that holds a folder named like one of the classes, or None."""
    for candidate in candidates:
        tree = descend(folder, candidate)
        if tree and tree.is_dir() and {path.name for path in folders(tree)} & set(classes):
            return tree
    return None
