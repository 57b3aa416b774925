"""Search for folders and images on disk, and readers of label files.

Names match in any letter case; hidden folders and those that start with `__` are ignored.
"""

import csv
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fsbench.core.errors import DataError
from fsbench.data.formats import readable_suffixes

HIDDEN = (".", "__")
"""Starts of the names of folders that are left out."""
STAND_INS = (
    (b"version https://git-lfs", "a pointer of Git LFS", "git lfs pull"),
    (b"annex/objects/", "a pointer of git-annex", "git annex get"),
    (b"<!doctype html", "a web page", ""),
    (b"<html", "a web page", ""),
)
"""Text (lower case) at the start of what lies in place of a file, what it is, what fetches it."""


def list_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder by name. Raise DataError if it cannot be read."""
    with refuse_unreadable(folder), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def list_folders(folder: Path) -> list[Path]:
    """Return the visible folders directly below, links included, sorted by name."""
    folders = [entry for entry in list_entries(folder) if entry.is_dir()]
    return [Path(entry.path) for entry in folders if not entry.name.startswith(HIDDEN)]


def stamp_file(path: Path) -> tuple[int, ...]:
    """Return size, mtime, ctime and inode of a file: equal while its content is unchanged.

    A file may be replaced at equal size and mtime (cp -p, rsync); ctime and inode then differ.
    Raises DataError for a missing file, and for a pipe or device, whose reading may never end.
    """
    with refuse_unreadable(path):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file but a folder, pipe, socket or device")
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


@contextmanager
def refuse_unreadable(path: Path) -> Iterator[None]:
    """Raise DataError naming the file, and what lies in its place, for an OSError inside."""
    try:
        yield
    except OSError as error:
        refuse_placeholder(path)
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def find_path(folder: Path, relative: str) -> Path | None:
    """Return the file or folder at `relative` ('/' as separator, any letter case), or None."""
    for part in Path(relative).parts:
        names = [entry.name for entry in list_entries(folder)] if folder.is_dir() else []
        same = [name for name in names if name.lower() == part.lower()]
        if not same:
            return None
        folder = folder / (part if part in same else same[0])
    return folder


def list_levels(folder: Path, depth: int) -> Iterator[list[Path]]:
    """Yield the folder, all folders directly below it, those below these, down to a depth."""
    level = [folder]
    yield level
    for _ in range(depth):
        level = [p for base in level for p in list_folders(base) if os.access(p, os.R_OK | os.X_OK)]
        yield level


def find_first(folder: Path, candidates: Iterable[str], depth: int = 0) -> Path | None:
    """Return the first candidate that exists below the folder, or not too deep in it, or None."""
    bases = [base for level in list_levels(folder, depth) for base in level]
    paths = (find_path(base, candidate) for candidate in candidates for base in bases)
    return next((path for path in paths if path is not None), None)


def list_files(folder: Path) -> list[str]:
    """Return all visible files at any depth: sorted paths relative to the folder, '/' between.

    Raises DataError for a link to a folder that is listed already, and for a name that is no text.
    """
    paths: list[str] = []
    visited: set[Path] = set()
    for here, below, names in os.walk(folder, followlinks=True):
        if (target := Path(here).resolve()) in visited:
            raise DataError(
                f"{here} links to {target}, whose images would count again", fix="remove the link"
            )
        visited.add(target)
        below[:] = [name for name in below if not name.startswith(HIDDEN)]
        below_root = Path(here).relative_to(folder)
        paths += [(below_root / name).as_posix() for name in names if not name.startswith(".")]
    if wrong := [path for path in paths if path != path.encode(errors="ignore").decode()]:
        raise DataError(
            f"the file name {os.fsencode(wrong[0])!r} in {folder} is not UTF-8",
            fix="rename it, e.g. with convmv -f latin1 -t utf8, or move it away",
        )
    return sorted(paths)


def list_images(folder: Path) -> list[str]:
    """Return the images of `list_files`, which see for the order and the errors."""
    return [path for path in list_files(folder) if path.lower().endswith(readable_suffixes())]


class ClassTree(NamedTuple):
    """A folder of class folders.

    images: class id and path relative to the root of every image, in class order, then by path;
    unknown: names of folders that are no class; notes: on all other files.
    """

    root: Path
    classes: tuple[str, ...]
    images: list[tuple[int, str]]
    unknown: list[str]
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls,
        root: Path,
        classes: Iterable[str] | None = None,
        synonyms: Mapping[str, str] = {},
        ignored: Collection[str] = (),
    ) -> "ClassTree":
        """List all files, but those of ignored folders.

        classes: by default the names of all folders, sorted; synonyms: see `match_names`. Raises
        DataError like `list_files`, and for two folders of one class.
        """
        names = [folder.name for folder in list_folders(root) if folder.name not in ignored]
        classes = tuple(sorted({*map(compose_name, names)}) if classes is None else classes)
        matches = match_names(names, classes, root, synonyms)
        ids = {name: classes.index(match) for name, match in matches.items()}
        images, others, suffixes = [], [], readable_suffixes()
        for path in list_files(root):
            folder, inside, _ = path.partition("/")
            if inside and folder in ids and path.lower().endswith(suffixes):
                images.append((ids[folder], path))
            elif folder not in ignored:
                others.append(path)
        unknown = [name for name in names if name not in ids]
        return cls(root, classes, sorted(images), unknown, describe_left_out(others))


def describe_left_out(paths: Sequence[str]) -> tuple[str, ...]:
    """Return a note that counts files which are not evaluated, by suffix; none for no file."""
    counts = Counter(Path(path).suffix.lower() or "without a suffix" for path in paths)
    listed = ", ".join(f"{n} {suffix}" for suffix, n in counts.most_common(8))
    return (f"files left out, not read as images: {listed}",) if paths else ()


def find_class_tree(folder: Path, candidates: Sequence[str], classes: Sequence[str]) -> Path | None:
    """Return the first candidate that has a folder named like a class, or None.

    Candidates other than "." may lie two levels deeper: archives unpack to different depths.
    """
    labels = {name.casefold() for name in classes}
    for bases in list_levels(folder, 2):
        names = [name for name in candidates if name != "." or bases == [folder]]
        for tree in (find_path(base, name) for base in bases for name in names):
            folders = list_folders(tree) if tree and tree.is_dir() else []
            if labels & {compose_name(path.name).casefold() for path in folders}:
                return tree
    return None


def compose_name(name: str) -> str:
    """Return a name as people read it: accents composed (macOS splits them), no outer spaces."""
    return unicodedata.normalize("NFC", name).strip()


def match_names(
    names: Iterable[str], classes: Iterable[str], where: object, synonyms: Mapping[str, str] = {}
) -> dict[str, str]:
    """Map names to the classes that people read in them; a name of no class is left out.

    synonyms: classes by other names of theirs. Letter case counts only where two names differ in
    nothing else, as `A` and `a` do. Raises DataError for two names in `where` of one class.
    """
    exact = {**{compose_name(name): name for name in classes}, **synonyms}
    spellings = Counter(map(str.casefold, exact))
    unique = {name.casefold(): c for name, c in exact.items() if spellings[name.casefold()] == 1}
    name_by_class: dict[str, str] = {}
    for name in names:
        label = compose_name(name)
        match = exact.get(label) or unique.get(label.casefold())
        if match and (other := name_by_class.setdefault(match, name)) != name:
            raise DataError(
                f"{where} has two spellings of the class {match}: {other!a} and {name!a}",
                fix="give the class one name",
            )
    return {name: match for match, name in name_by_class.items()}


def refuse_placeholder(path: Path) -> None:
    """Raise DataError for a pointer, broken link or web page in place of a file's content."""
    stand_in = None
    if path.is_symlink() and not path.exists():
        target = str(path.readlink())
        command = "git annex get" if "annex/objects" in target else ""
        stand_in = f"a link to {target}, which is missing", command
    elif path.is_file() and os.access(path, os.R_OK):  # else whoever reads it names the fault
        with path.open("rb") as stream:
            stand_in = identify_stand_in(stream.read(200))
    if stand_in:
        what, command = stand_in
        fix = f"run `{command}` in {path.parent}" if command else "fetch the file again"
        raise DataError(f"{path} is {what}, without the content: {fix}", fix=fix)


def identify_stand_in(head: bytes) -> tuple[str, str] | None:
    """Return what the first bytes show in place of content, and what fetches it; None if none."""
    return next(((what, run) for mark, what, run in STAND_INS if mark in head.lower()), None)


def without_suffix(name: str) -> str:
    """Return the image id of a file name: 00000001_000.png -> 00000001_000; ids are unchanged."""
    return re.sub(r"\.(png|jpe?g)$", "", name, flags=re.IGNORECASE)


def read_csv_columns(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the named columns of every row of a CSV file, stripped of outer spaces.

    Raises DataError naming the file for a missing or repeated column and a row of another length.
    """
    refuse_placeholder(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            delimiter = "\t" if path.suffix == ".tab" else ","  # as Dataverse serves tables
            header, *rows = [*csv.reader(stream, strict=True, delimiter=delimiter)] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"cannot read the label file {path}: {error}",
            fix="use the official file, as comma-separated UTF-8 text",
        ) from error
    header = [name.strip() for name in header]
    if missing := [name for name in columns if header.count(name) != 1]:
        raise DataError(
            f"{path} lacks the columns {', '.join(missing)}; found: {', '.join(header) or 'none'}",
            fix=f"use the official file, with the columns {', '.join(columns)}, each once",
        )
    positions = [header.index(name) for name in columns]
    least, most = max(positions) + 1, len(header)
    if wrong := [n for n, row in enumerate(rows, 2) if row and not least <= len(row) <= most]:
        raise DataError(
            f"{path}, row {wrong[0]} has {len(rows[wrong[0] - 2])} fields, the header {most}",
            fix="the file is cut or edited: fetch it again",
        )
    return [tuple(row[position].strip() for position in positions) for row in rows if row]
