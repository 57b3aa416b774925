"""Folders and archives of strangers: only plain files of bounded number and size are read.

Refused are absolute paths, '..', links, devices, repeated names, encryption, decompression bombs,
and more results than anybody evaluates.
"""

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, cast

from fsbench.core.errors import UsageError, ValidationFailed

MAX_FILES = 20_000
MAX_TOTAL = 2 * 2**30
MAX_FILE = 128 * 2**20
MAX_DEPTH = 12
MAX_ARCHIVE = 64 * 2**20
"""Bytes of the archive itself, which also bounds the list of members of a zip."""
MAX_HEADER = 2**20
"""Bytes of a tar's headers between two members: a long name or a list of holes may claim more."""
MAX_MODELS = 1000
MAX_FILE_BYTES = 256 * 2**20
"""Bytes of all results on disk; the results of one model take about 300 kB."""
CHUNK = 2**20
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
FIX = "pack the results folder again: zip -r NAME.zip results, or tar czf NAME.tar.gz results"
TOO_MUCH = "submit the results of one model, and only those of the board's columns"


class LimitedReader:
    """Reader of at most `left` bytes: tarfile reads headers of any size that they state."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self.file, self.left, self.limit = file, limit, limit
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        self.left -= size
        if size < 0 or self.left < 0:
            raise ValueError(f"headers of more than {self.limit} bytes")
        return self.file.read(size)


@dataclass(frozen=True)
class ArchiveMember:
    """One member of an archive, with a way to read it."""

    name: str
    plain: bool
    folder: bool
    open: Callable[[], IO[bytes] | None]


@contextmanager
def open_submission(path: Path) -> Iterator[Path]:
    """Yield a folder with the content of `path`: the folder itself, or an unpacked archive.

    Raises UsageError if there is nothing to open, ValidationFailed for hostile content.
    """
    if path.is_dir():
        check_folder(path)
        yield path
    elif path.is_file() and path.name.lower().endswith(SUFFIXES):
        with TemporaryDirectory(prefix="fsbench-") as folder:
            unpack_archive(path, Path(folder))
            yield Path(folder)
    else:
        reason = "is no folder and no archive" if path.exists() else "does not exist"
        raise UsageError(
            f"{path} {reason}", fix=f"give a folder of results, or {', '.join(SUFFIXES)}"
        )


def check_folder(root: Path) -> None:
    """Check that a folder holds a bounded number of plain files. Raises ValidationFailed."""
    files = total = 0
    for path in root.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ValidationFailed(
                f"{path} is a link or special file", fix="replace it by the file itself"
            )
        if path.is_file():
            files, total = files + 1, total + path.stat().st_size
        if files > MAX_FILES or total > MAX_TOTAL:
            raise ValidationFailed(
                f"{root} holds more than {MAX_FILES} files or {MAX_TOTAL} bytes",
                fix="submit the results of one model only",
            )


def unpack_archive(path: Path, into: Path) -> None:
    """Unpack an archive into an empty folder. Raises ValidationFailed naming the bad member."""
    if path.stat().st_size > MAX_ARCHIVE:
        fix = "submit one model at a time"
        raise ValidationFailed(f"{path} is larger than {MAX_ARCHIVE} bytes", fix=fix)
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                extract_members(path, iterate_zip(archive), into)
        else:
            packed = not path.name.lower().endswith(".tar")
            with gzip.open(path) if packed else path.open("rb") as file:
                metered = LimitedReader(cast("IO[bytes]", file), MAX_HEADER)
                with tarfile.open(None, "r:", cast("IO[bytes]", metered)) as archive:
                    extract_members(path, iterate_tar(archive, metered), into)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise ValidationFailed(f"{path} is no readable archive: {error}", fix=FIX) from error
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise ValidationFailed(
            f"{path} is encrypted or packed in an unknown way: {error}", fix=FIX
        ) from error


def iterate_zip(archive: zipfile.ZipFile) -> Iterator[ArchiveMember]:
    for info in archive.infolist():
        kind = info.external_attr >> 16 & 0o170000
        if info.compress_type not in PACKED:
            raise ValueError(f"{info.filename[:200]!r} is not packed by deflate")
        yield ArchiveMember(
            info.filename,
            plain=kind in (0, 0o100000) and not info.is_dir(),
            folder=info.is_dir(),
            open=lambda info=info: archive.open(info),  # type: ignore[misc]
        )


def iterate_tar(archive: tarfile.TarFile, metered: LimitedReader) -> Iterator[ArchiveMember]:
    for info in archive:
        metered.left = MAX_FILE + 2 * CHUNK  # the member is read before the next header
        yield ArchiveMember(
            info.name,
            plain=info.isreg(),
            folder=info.isdir(),
            open=lambda info=info: archive.extractfile(info),  # type: ignore[misc]
        )
        metered.left = MAX_HEADER


def extract_members(path: Path, members: Iterator[ArchiveMember], into: Path) -> None:
    """Write plain files, counting the bytes that really come out of the decompressor."""
    left = MAX_TOTAL
    for number, member in enumerate(members):
        if number >= MAX_FILES:
            raise ValidationFailed(f"{path} holds more than {MAX_FILES} members", fix=FIX)
        target = into / check_member_path(path, member)
        if member.folder:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        left -= copy_member(path, member, target, min(MAX_FILE, left))


def check_member_path(path: Path, member: ArchiveMember) -> PurePosixPath:
    """Return the member's path. Raises ValidationFailed if it leaves the folder or is no file."""
    name = PurePosixPath(member.name.replace("\\", "/"))
    escapes = name.is_absolute() or ".." in name.parts or ":" in member.name
    if escapes or "\0" in member.name or len(name.parts) > MAX_DEPTH:
        raise ValidationFailed(f"{path}: the path {member.name[:200]!r} leaves the folder", fix=FIX)
    if not (member.plain or member.folder):
        raise ValidationFailed(f"{path}: {member.name[:200]!r} is a link or special file", fix=FIX)
    return name


def copy_member(path: Path, member: ArchiveMember, target: Path, limit: int) -> int:
    """Return the bytes written. Raises ValidationFailed beyond `limit` bytes."""
    if target.exists():
        raise ValidationFailed(f"{path}: duplicate member {member.name[:200]!r}", fix=FIX)
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


def check_sizes(folders: Sequence[Path]) -> None:
    """Check number and size of the entries to read. Raises ValidationFailed."""
    size = sum(path.stat().st_size for f in folders for path in f.iterdir() if path.is_file())
    if len(folders) > MAX_MODELS or size > MAX_FILE_BYTES:
        raise ValidationFailed(
            f"{len(folders)} models of {size} bytes, allowed are {MAX_MODELS} and {MAX_FILE_BYTES}",
            fix=TOO_MUCH,
        )
