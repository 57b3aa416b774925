"""Contents of the images of a target: hashes, the fingerprint, and warnings of odd files.

The fingerprint is the sha-256 over sorted (canonical id, content hash). What was read is cached in
<cache>/hashes, one file per data set folder: the sha-256 of its second line, and JSON. See
fsbench/data/README.md, "Which images a result is about".
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

from fsbench.core.io import write_atomic
from fsbench.core.progress import SILENT, Reporter
from fsbench.data.base import TargetDataset, hash_lines
from fsbench.data.files import refuse_unreadable, stamp_file
from fsbench.data.images import largest_value

ContentCache = dict[str, list[int | str]]
"""[size, mtime in ns, ctime in ns, inode, largest value, sha-256] by relative path."""

PART = 32
"""Images that a thread hashes at a time: most are only looked up, faster than a thread starts."""
N_LISTED = 10
"""Equal images that a note names."""


@dataclass(frozen=True)
class Contents:
    """Contents of the images of a data set, in its order.

    hashes: sha-256 of the files; largest: see `largest_value`.
    """

    dataset: TargetDataset
    hashes: Sequence[str]
    largest: Sequence[int]

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint, 64 hex digits; other bits in use give another one."""
        bits = self.dataset.bits
        pairs = sorted(zip(self.dataset.canonical_ids, self.hashes, strict=True))
        lines = [f"{canonical_id} {sha256}" for canonical_id, sha256 in pairs]
        return hash_lines([*lines, *([f"{bits} bits"] if bits else [])])

    @property
    def warnings(self) -> list[str]:
        """Warnings on equal images in several classes, and on 16-bit images that look black."""
        return [*self._warn_of_equal_images(), *self._warn_of_unused_bits()]

    def _warn_of_equal_images(self) -> Iterator[str]:
        members: dict[str, list[int]] = {}
        for index, sha256 in enumerate(self.hashes):
            members.setdefault(sha256, []).append(index)
        ids, labels = self.dataset.canonical_ids, self.dataset.labels.tolist()
        equal = [group for group in members.values() if len({labels[i] for i in group}) > 1]
        first = [{labels[i]: ids[i] for i in reversed(group)} for group in equal[:N_LISTED]]
        texts = [" = ".join(group[label] for label in sorted(group)) for group in first]
        if equal:
            yield (
                f"warning: {sum(map(len, equal))} images have the same content as an image of "
                f"another class: {', '.join(texts)}{', ...' if len(equal) > N_LISTED else ''}"
            )

    def _warn_of_unused_bits(self) -> Iterator[str]:
        values = [value for value in self.largest if value >= 0]
        limit, top = 1 << (self.dataset.bits or 16), max(values, default=0)
        dim = sum(value < limit // 8 for value in values)
        bits = max(8, top.bit_length())
        scale = f"scale them: ?bits={bits} behind folder:DIR or hf-hub:NAME"
        if dim:
            yield (
                f"warning: {dim} of {len(values)} 16-bit images use less than an eighth of their "
                f"range and look almost black (the largest value of all is {top} of {limit - 1}); "
                f"{scale if 1 << bits < limit else 'save all with one range'}"
            )


def hash_contents(dataset: TargetDataset, cache: Path, report: Reporter = SILENT) -> Contents:
    """Read the content of every image. Raise DataError naming an unreadable file."""
    store = cache / "hashes" / f"{hash_lines([str(dataset.root.resolve())])[:16]}.json"
    cached = read_store(store, report)
    parts = [range(i, min(i + PART, len(dataset))) for i in range(0, len(dataset), PART)]
    with (
        report.task(f"hash {dataset.name}", len(dataset), "images") as advance,
        ThreadPoolExecutor(8) as threads,
    ):
        entries = []
        for part in threads.map(lambda part: [make_entry(dataset, i, cached) for i in part], parts):
            entries += part
            advance(len(part))
    fresh = dict(zip(dataset.paths, entries, strict=True))
    if dataset.file(0) is not None and any(cached.get(path) != e for path, e in fresh.items()):
        text = json.dumps(cached | fresh)
        write_atomic(store, f"{hash_lines([text])}\n{text}".encode())
    return Contents(dataset, [str(entry[-1]) for entry in entries], [int(e[-2]) for e in entries])


def make_entry(dataset: TargetDataset, index: int, cached: ContentCache) -> list[int | str]:
    """Return the entry of an image: the cached one while `stamp_file` of its file is the same."""
    path = dataset.file(index)
    if path is None:
        data = dataset.content(index)
        return [largest_value(BytesIO(data)), hashlib.sha256(data).hexdigest()]
    stamp = stamp_file(path)
    old = cached.get(dataset.paths[index])
    if old and old[:-2] == [*stamp]:
        return old
    with refuse_unreadable(path), path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        return [*stamp, largest_value(stream), digest]


def read_store(store: Path, report: Reporter) -> ContentCache:
    """Read the cached hashes of a folder; report a damaged file and start afresh."""
    try:
        digest, text = store.read_text().split("\n")
        if digest == hash_lines([text]):
            entries: ContentCache = json.loads(text)
            return entries
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        pass
    report.log(f"{store} is damaged: hashing all images again")
    return {}
