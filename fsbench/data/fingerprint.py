"""Which bytes a data set is: sha-256 over sorted (canonical id, content hash), design.md 6.

Content hashes of files are kept in <cache>/hashes, one file a data set folder (the sha-256 of the
second line, which is JSON), and reused as long as path, size and mtime stay the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.progress import SILENT, Reporter
from fsbench.data.base import TargetDataset, hash_lines

Known = dict[str, list[int | str]]
"""Relative path -> [size, mtime in ns, sha-256]."""


def fingerprint(dataset: TargetDataset, cache: Path, report: Reporter = SILENT) -> str:
    """64 hex digits. Raises DataError naming a file that cannot be read."""
    store = cache / "hashes" / f"{hash_lines([str(dataset.root.resolve())])[:16]}.json"
    known = _load(store, report)
    with (
        report.task(f"hash {dataset.name}", len(dataset), "images") as advance,
        ThreadPoolExecutor(8) as threads,
    ):
        hashes = []
        for entry in threads.map(lambda i: _entry(dataset, i, known), range(len(dataset))):
            hashes.append(entry)
            advance(1)
    fresh = dict(zip(dataset.paths, hashes, strict=True))
    if dataset.file(0) is not None and any(known.get(path) != e for path, e in fresh.items()):
        _save(store, known | fresh)
    pairs = zip(dataset.canonical_ids, hashes, strict=True)
    return hash_lines(f"{canonical_id} {entry[2]}" for canonical_id, entry in sorted(pairs))


def _entry(dataset: TargetDataset, index: int, known: Known) -> list[int | str]:
    path = dataset.file(index)
    if path is None:
        return [0, 0, hashlib.sha256(dataset.image(index).tobytes()).hexdigest()]
    try:
        stat = path.stat()
        old = known.get(dataset.paths[index])
        if old and old[:2] == [stat.st_size, stat.st_mtime_ns]:
            return old
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    return [stat.st_size, stat.st_mtime_ns, digest]


def _load(store: Path, report: Reporter) -> Known:
    """What is known of the folder's files; nothing, and said so, from a file that is damaged."""
    try:
        digest, known = store.read_text().split("\n")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        digest, known = "", ""
    if digest != hash_lines([known]):
        report.log(f"{store} is damaged: hashing all images again")
        return {}
    found: Known = json.loads(known)
    return found


def _save(store: Path, known: Known) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    partial = store.with_name(f".{store.name}.{os.getpid()}")
    text = json.dumps(known)
    partial.write_text(f"{hash_lines([text])}\n{text}")
    partial.replace(store)
