"""Folders and archives from strangers: only plain files of bounded number and size come through.

Refused: absolute paths, '..', links, devices, repeated names, encryption, decompression bombs.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, cast

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.data.metered import Metered

MAX_FILES = 20_000
MAX_TOTAL = 2 * 2**30
MAX_FILE = 128 * 2**20
MAX_DEPTH = 12
MAX_ARCHIVE = 64 * 2**20
"""Bytes of the archive itself, which also bounds the list of members of a zip."""
MAX_HEADER = 2**20
"""Bytes of a tar's headers between two members: a long name or a list of holes may pretend more."""
CHUNK = 2**20
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
FIX = "pack the results folder again: zip -r NAME.zip results, or tar czf NAME.tar.gz results"


@dataclass(frozen=True)
class Member:
    """One entry of an archive, with a way to read it."""

    name: str
    plain: bool
    folder: bool
    open: Callable[[], IO[bytes] | None]


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """A folder with the content of `path`: itself, or a temporary one an archive went into.

    Raises UsageError when there is nothing to open, ValidationFailed for hostile content.
    """
    if path.is_dir():
        check_folder(path)
        yield path
    elif path.is_file() and path.name.lower().endswith(SUFFIXES):
        with TemporaryDirectory(prefix="fsbench-") as folder:
            unpack(path, Path(folder))
            yield Path(folder)
    else:
        what = "is no folder and no archive" if path.exists() else "does not exist"
        raise UsageError(
            f"{path} {what}", fix=f"give a folder of results, or {', '.join(SUFFIXES)}"
        )


def check_folder(root: Path) -> None:
    """Raises ValidationFailed when a folder holds links, special files, or too much."""
    files = total = 0
    for folder, names, leaves in os.walk(root):
        for name in [*names, *leaves]:
            path = Path(folder) / name
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise ValidationFailed(
                    f"{path} is a link or special file", fix="replace it by the file itself"
                )
        files += len(leaves)
        total += sum((Path(folder) / leaf).stat().st_size for leaf in leaves)
        if files > MAX_FILES or total > MAX_TOTAL:
            raise ValidationFailed(
                f"{root} holds more than {MAX_FILES} files or {MAX_TOTAL} bytes",
                fix="submit the results of one model only",
            )


def unpack(path: Path, into: Path) -> None:
    """Unpack an archive into an empty folder. Raises ValidationFailed naming the bad member."""
    if path.stat().st_size > MAX_ARCHIVE:
        raise ValidationFailed(
            f"{path} is larger than {MAX_ARCHIVE} bytes", fix="submit one model at a time"
        )
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                extract(path, zip_members(archive), into)
        else:
            with raw(path) as file:
                metered = Metered(file, MAX_HEADER)
                with tarfile.open(None, "r:", cast("IO[bytes]", metered)) as archive:
                    extract(path, tar_members(archive, metered), into)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise ValidationFailed(f"{path} is no readable archive: {error}", fix=FIX) from error
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise ValidationFailed(
            f"{path} is encrypted or packed in an unknown way: {error}", fix=FIX
        ) from error


def zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    for info in archive.infolist():
        kind = info.external_attr >> 16 & 0o170000
        if info.compress_type not in PACKED:
            raise ValueError(f"{info.filename[:200]!r} is not packed by deflate")
        yield Member(
            info.filename,
            plain=kind in (0, 0o100000) and not info.is_dir(),
            folder=info.is_dir(),
            open=lambda info=info: archive.open(info),  # type: ignore[misc]
        )


def raw(path: Path) -> IO[bytes]:
    """The bytes of a tar, decompressed on the way where its name says gz."""
    if path.name.lower().endswith(".tar"):
        return path.open("rb")
    return cast("IO[bytes]", gzip.open(path))


def tar_members(archive: tarfile.TarFile, metered: Metered) -> Iterator[Member]:
    for info in archive:
        metered.left = MAX_FILE + 2 * CHUNK  # its content is read before the next one is asked for
        yield Member(
            info.name,
            plain=info.isreg(),
            folder=info.isdir(),
            open=lambda info=info: archive.extractfile(info),  # type: ignore[misc]
        )
        metered.left = MAX_HEADER


def extract(path: Path, members: Iterator[Member], into: Path) -> None:
    """Write plain files, counting what really comes out of the decompressor."""
    left = MAX_TOTAL
    for number, member in enumerate(members):
        if number >= MAX_FILES:
            raise ValidationFailed(f"{path} holds more than {MAX_FILES} members", fix=FIX)
        target = into / inside(path, member)
        if member.folder:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        left -= copy(path, member, target, min(MAX_FILE, left))


def inside(path: Path, member: Member) -> PurePosixPath:
    """The member's path, if it stays inside and is a plain file or folder."""
    name = PurePosixPath(member.name.replace("\\", "/"))
    escapes = name.is_absolute() or ".." in name.parts or ":" in member.name
    if escapes or "\0" in member.name or len(name.parts) > MAX_DEPTH:
        raise ValidationFailed(f"{path}: the path {member.name[:200]!r} leaves the folder", fix=FIX)
    if not (member.plain or member.folder):
        raise ValidationFailed(f"{path}: {member.name[:200]!r} is a link or special file", fix=FIX)
    return name


def copy(path: Path, member: Member, target: Path, limit: int) -> int:
    """Bytes written. Raises ValidationFailed beyond `limit`, whatever the header says."""
    if target.exists():
        raise ValidationFailed(f"{path}: {member.name[:200]!r} stands there twice", fix=FIX)
    source, size = member.open(), 0
    if source is None:
        raise ValidationFailed(f"{path}: {member.name[:200]!r} cannot be read", fix=FIX)
    with source, target.open("xb") as out:
        while chunk := source.read(CHUNK):
            size += len(chunk)
            if size > limit:
                raise ValidationFailed(
                    f"{path}: {member.name[:200]!r} unpacks to more than {limit} bytes", fix=FIX
                )
            out.write(chunk)
    return size
