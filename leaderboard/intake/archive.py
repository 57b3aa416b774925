"""Folders and zip files of strangers: only plain files of bounded number and size are read.

Refused are absolute paths, '..', links, devices, repeated names, encryption, decompression bombs,
and more results than anybody evaluates.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from fsbench.core.errors import UsageError, ValidationFailed

MAX_FILES = 5000
MAX_TOTAL = 256 * 2**20
"""Bytes of all files; the results of one model take about 300 kB."""
MAX_DEPTH = 12
MAX_ARCHIVE = 64 * 2**20
"""Bytes of the zip file itself, which also bounds its list of members."""
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Others take memory without bound."""
PLAIN_TYPES = (0, 0o100000)
"""Unix file types of plain members; 0 where the zip file was written elsewhere."""
TOO_MUCH = "submit the results of one model, and only those of the board's columns"


@contextmanager
def open_submission(path: Path) -> Iterator[Path]:
    """Yield a folder of results: the folder `path`, or the content of a zip file.

    Of a zip file with one folder at its top, that folder is yielded. Raises UsageError if there is
    nothing to open, ValidationFailed for hostile content.
    """
    if path.is_dir():
        check_folder(path)
        yield path
    elif path.is_file() and path.suffix.lower() == ".zip":
        with TemporaryDirectory(prefix="fsbench-") as folder:
            unpack(path, Path(folder))
            top = list(Path(folder).iterdir())
            yield top[0] if len(top) == 1 and top[0].is_dir() else Path(folder)
    else:
        reason = "is no folder and no zip file" if path.exists() else "does not exist"
        raise UsageError(f"{path} {reason}", fix="give a folder of results, or a .zip of one")


def check_folder(root: Path) -> None:
    """Check that a folder holds a bounded number of plain files. Raises ValidationFailed."""
    files = size = 0
    for path in root.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ValidationFailed(
                f"{path} is a link or special file", fix="replace it by the file itself"
            )
        if path.is_file():
            files, size = files + 1, size + path.stat().st_size
            check_bounds(root, files, size)


def check_bounds(root: Path, files: int, size: int) -> None:
    """Check number and bytes of files. Raises ValidationFailed."""
    if files > MAX_FILES or size > MAX_TOTAL:
        raise ValidationFailed(
            f"{root} holds more than {MAX_FILES} files or {MAX_TOTAL} bytes", fix=TOO_MUCH
        )


def unpack(path: Path, into: Path) -> None:
    """Unpack a zip file into an empty folder. Raises ValidationFailed naming the bad member.

    zipfile writes no more bytes of a member than its header states, so headers bound the total.
    """
    if path.stat().st_size > MAX_ARCHIVE:
        raise ValidationFailed(f"{path} is larger than {MAX_ARCHIVE} bytes", fix=TOO_MUCH)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            check_bounds(path, len(members), sum(member.file_size for member in members))
            targets = set[PurePosixPath]()
            for member in members:
                target = check_member(member)
                if target in targets:
                    raise ValueError(f"duplicate member {member.filename[:200]!r}")
                targets.add(target)
            archive.extractall(into)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise ValidationFailed(
            f"{path} is no readable archive: {error}",
            fix="pack the results folder again: zip -r NAME.zip results",
        ) from error


def check_member(member: zipfile.ZipInfo) -> PurePosixPath:
    """Return the path of a member. Raises ValueError if it leaves the folder or is no file."""
    name, path = member.filename[:200], PurePosixPath(member.filename)
    is_inside = not path.is_absolute() and ".." not in path.parts and len(path.parts) <= MAX_DEPTH
    if not is_inside or {"\\", ":"} & {*member.filename}:  # both have a meaning on Windows
        raise ValueError(f"the path {name!r} leaves the folder")
    if not (member.is_dir() or member.external_attr >> 16 & 0o170000 in PLAIN_TYPES):
        raise ValueError(f"{name!r} is a link or special file")
    if member.compress_type not in PACKED:
        raise ValueError(f"{name!r} is not packed by deflate")
    return path
