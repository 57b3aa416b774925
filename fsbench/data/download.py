"""Downloads of data sets: checked by hash, resumed, unpacked and verified."""

import gzip
import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from fsbench.core.errors import DataError
from fsbench.core.progress import SILENT, Reporter
from fsbench.data import catalog
from fsbench.data.cards import Archive, DatasetFacts
from fsbench.data.catalog import DataRoots
from fsbench.data.verification import verify_dataset

CHUNK = 1 << 20
TIMEOUT = 60.0
"""Seconds without data before a connection is considered lost."""
PACKED = (".zip", ".tar", ".tgz", ".gz")
"""Suffixes of archives to unpack; other files are kept as they are."""
NO_ARCHIVE = (shutil.ReadError, zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, EOFError)
"""Exceptions for a file of the right hash that is no sound archive."""


def acquire_datasets(
    name: str, roots: DataRoots, cache: Path, report: Reporter = SILENT
) -> Iterator[tuple[DatasetFacts, Path | None, str]]:
    """Download, unpack and verify a data set, or each of a group (cdfsl, cdfsl-small, transfer).

    Yield facts, folder (None if the steps of the card are to be done by hand), and what a user must
    know about images that are not the official ones. Raises UsageError for a missing --data ROOT,
    DataError for a failed download and for images that are not as expected.
    """
    for member in catalog.find_datasets(name):
        facts, note = catalog.all_facts()[member], ""
        if not facts.archives:
            yield facts, roots.find(facts) if is_complete(member, roots, cache) else None, ""
            continue
        folder = roots.destination(facts)
        placed = replace(roots, named={**roots.named, member: folder})
        packed = (folder / one.file for one in facts.archives if one.file.endswith(PACKED))
        is_interrupted = any(path.exists() for path in packed)  # they are removed once unpacked
        if not is_interrupted and is_complete(member, placed, cache):
            report.log(f"{member} is complete in {folder}: nothing is fetched")
        else:
            download_archives(facts.archives, folder, report)
            check = verify_dataset(member, placed, cache, report)
            if problem := check.problem():
                if check.corrupt or all(archive.official for archive in facts.archives):
                    raise problem
                note = f"{'; '.join(check.notes) or 'other images'}: results are marked `subset`"
        yield facts, folder, note


def is_complete(name: str, roots: DataRoots, cache: Path) -> bool:
    """Return whether the official images are there, by name; none is opened."""
    with suppress(DataError):
        return verify_dataset(name, roots, cache, decode=False).problem() is None
    return False


def download_archives(archives: Sequence[Archive], folder: Path, report: Reporter = SILENT) -> None:
    """Fetch all archives of a data set into `folder`, then unpack those that are packed."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [fetch_archive(archive, folder, report) for archive in archives]
    for archive, path in zip(archives, paths, strict=True):
        for packed in (path, *(folder / name for name in archive.inner)):
            if packed.name.endswith(PACKED):
                report.log(f"unpacking {packed.name}")
                extract_archive(packed, folder / archive.into)
                packed.unlink()


def fetch_archive(archive: Archive, folder: Path, report: Reporter = SILENT) -> Path:
    """Download an archive to `folder` from the first address that has it, and check its hash.

    A broken transfer leaves NAME.part, which is resumed. Raises DataError if no address has it.
    """
    path, part = folder / archive.file, folder / f"{archive.file}.part"
    if path.is_file() and has_hash(path, archive.known_hash):
        return path
    for url in (archive.url, *archive.mirrors):
        done = -1
        while (size := part.stat().st_size if part.exists() else 0) > done:
            done = size
            try:
                resume_download(url, part, done, report)
            except (OSError, HTTPException) as error:
                fault = f"cannot fetch {url}: {error}"
            else:
                if has_hash(part, archive.known_hash):
                    return part.replace(path)
                part.unlink()
                fault = f"{url} does not have the hash {archive.known_hash}"
            report.log(fault)
    raise DataError(
        fault, fix="run the same command again, which resumes; report a hash that is wrong twice"
    )


def has_hash(path: Path, known_hash: str) -> bool:
    kind, _, digits = known_hash.partition(":")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, kind).hexdigest() == digits.lower()


def resume_download(url: str, part: Path, done: int, report: Reporter) -> None:
    """Fetch all but `done` bytes of the file at an address. Raise OSError if that breaks off."""
    request = Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urlopen(request, timeout=TIMEOUT)
    except HTTPError as error:
        if error.code == 416 and done:  # nothing is left to send: the part is complete
            return
        raise
    done = done if response.status == 206 else 0
    total = done + int(response.headers["Content-Length"] or 0)
    with (
        response,
        report.task(f"download {part.stem}", total, "bytes", done=done) as advance,
        part.open("ab" if done else "wb") as stream,
    ):
        while chunk := response.read(CHUNK):
            stream.write(chunk)
            advance(len(chunk))
    if (size := part.stat().st_size) < total:
        raise OSError(f"the connection closed after {size} of {total} bytes")


def extract_archive(archive: Path, folder: Path) -> None:
    """Unpack an archive of the right hash into `folder` alone. Raise DataError if it is none."""
    try:
        if archive.suffix == ".gz" and not archive.stem.endswith(".tar"):
            folder.mkdir(parents=True, exist_ok=True)
            with gzip.open(archive) as packed, (folder / archive.stem).open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
        elif archive.suffix == ".zip":  # which leads nowhere else and takes no filter
            shutil.unpack_archive(archive, folder)
        else:
            shutil.unpack_archive(archive, folder, "tar", filter="data")
    except NO_ARCHIVE as error:
        raise DataError(f"{archive} is damaged: {error}", fix="remove it, fetch again") from error
