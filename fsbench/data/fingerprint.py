"""Fingerprint of the bytes of a data set: sha-256 over sorted (canonical id, content hash).

Content hashes are cached in <cache>/hashes, one file per data set folder (its first line is the
sha-256 of the second, which is JSON), and reused while path, size, mtime, ctime and inode are
unchanged.
See fsbench/data/README.md, "Which images a result is about".
"""

from __future__ import annotations

import errno
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.io import replacing
from fsbench.core.progress import SILENT, Reporter
from fsbench.data.base import TargetDataset, hash_lines
from fsbench.data.files import stamp_file

HashCache = dict[str, list[int | str]]
"""[size, mtime in ns, ctime in ns, inode, sha-256] by relative path."""


def fingerprint(dataset: TargetDataset, cache: Path, report: Reporter = SILENT) -> str:
    """Return the fingerprint, 64 hex digits. Raise DataError naming an unreadable file."""
    store = cache / "hashes" / f"{hash_lines([str(dataset.root.resolve())])[:16]}.json"
    cached = _load(store, report)
    with (
        report.task(f"hash {dataset.name}", len(dataset), "images") as advance,
        ThreadPoolExecutor(8) as threads,
    ):
        hashes = []
        for entry in threads.map(lambda i: _entry(dataset, i, cached), range(len(dataset))):
            hashes.append(entry)
            advance(1)
    fresh = dict(zip(dataset.paths, hashes, strict=True))
    if dataset.file(0) is not None and any(cached.get(path) != e for path, e in fresh.items()):
        _save(store, cached | fresh, report)
    pairs = zip(dataset.canonical_ids, hashes, strict=True)
    return hash_lines(f"{canonical_id} {entry[-1]}" for canonical_id, entry in sorted(pairs))


def _entry(dataset: TargetDataset, index: int, cached: HashCache) -> list[int | str]:
    path = dataset.file(index)
    if path is None:
        return [hashlib.sha256(dataset.content(index)).hexdigest()]
    try:
        stamp = stamp_file(path)
        old = cached.get(dataset.paths[index])
        if old and old[:-1] == [*stamp]:
            return old
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return [*stamp, digest]


def _load(store: Path, report: Reporter) -> HashCache:
    """Read the cached hashes of a folder; report a damaged file and start afresh."""
    try:
        digest, cached = store.read_text().split("\n")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        digest, cached = "", ""
    if digest != hash_lines([cached]):
        report.log(f"{store} is damaged: hashing all images again")
        return {}
    entries: HashCache = json.loads(cached)
    return entries


def _save(store: Path, cached: HashCache, report: Reporter) -> None:
    """Write the content hashes; only report a cache that is read-only."""
    text = json.dumps(cached)
    try:
        with replacing(store) as temporary:
            temporary.write_text(f"{hash_lines([text])}\n{text}")
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        report.log(f"content hashes are not cached: {store.parent} is read-only")
