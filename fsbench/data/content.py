"""Contents of the images of a target: hashes, the fingerprint, and warnings of odd ones.

The fingerprint is the sha-256 over sorted (canonical id, content hash). What was read is cached in
<cache>/hashes, one JSON file per data set folder.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from fsbench.core.io import read_sealed, write_sealed
from fsbench.core.progress import SILENT, Reporter
from fsbench.data.base import TargetDataset, hash_lines
from fsbench.data.files import refuse_unreadable, stamp_file
from fsbench.data.images import largest_value

Entry = list[int | str]
"""[size, mtime in ns, ctime in ns, inode] of an image with a file, largest value, sha-256."""

PART = 32
"""Images that a thread hashes at a time: most are only looked up, faster than a thread starts."""
N_LISTED = 10
"""Equal images that a warning names."""


class Contents(NamedTuple):
    """Contents of a data set: its fingerprint (64 hex digits), and warnings of odd images."""

    fingerprint: str
    warnings: tuple[str, ...]


def hash_contents(dataset: TargetDataset, cache: Path, report: Reporter = SILENT) -> Contents:
    """Read the content of every image. Raise DataError naming an unreadable file.

    Other bits in use give another fingerprint.
    """
    store = cache / "hashes" / f"{hash_lines([str(dataset.root.resolve())])[:16]}.json"
    cached: dict[str, Entry] = {}
    with suppress(OSError, ValueError):  # it is missing or damaged
        cached = dict(read_sealed(store)["entries"])
    parts = [range(i, min(i + PART, len(dataset))) for i in range(0, len(dataset), PART)]
    entries: list[Entry] = []
    with (
        report.task(f"hash {dataset.name}", len(dataset), "images") as advance,
        ThreadPoolExecutor(8) as threads,
    ):
        for part in threads.map(lambda part: [make_entry(dataset, i, cached) for i in part], parts):
            entries += part
            advance(len(part))
    fresh = dict(zip(dataset.paths, entries, strict=True))
    if dataset.file(0) is not None and any(cached.get(path) != e for path, e in fresh.items()):
        write_sealed(store, {"entries": cached | fresh})
    pairs = sorted(zip(dataset.canonical_ids, (str(entry[-1]) for entry in entries), strict=True))
    bits = [f"{dataset.bits} bits"] if dataset.bits else []
    fingerprint = hash_lines([*(f"{image} {sha256}" for image, sha256 in pairs), *bits])
    largest = [int(entry[-2]) for entry in entries]
    warnings = *warn_of_equal_images(dataset, pairs), *warn_of_unused_bits(dataset, largest)
    return Contents(fingerprint, warnings)


def make_entry(dataset: TargetDataset, index: int, cached: dict[str, Entry]) -> Entry:
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


def warn_of_equal_images(dataset: TargetDataset, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a warning if images of several classes have the same content.

    pairs: canonical ids, sorted, with the sha-256 of each.
    """
    labels = dict(zip(dataset.canonical_ids, dataset.labels.tolist(), strict=True))
    images: dict[str, list[str]] = {}
    for image, sha256 in pairs:
        images.setdefault(sha256, []).append(image)
    equal = [same for same in images.values() if len({labels[image] for image in same}) > 1]
    if equal:
        listed = ", ".join(" = ".join(same[:N_LISTED]) for same in equal[:N_LISTED])
        yield (
            f"warning: {sum(map(len, equal))} images have the same content as an image of another "
            f"class: {listed}{', ...' * (len(equal) > N_LISTED)}"
        )


def warn_of_unused_bits(dataset: TargetDataset, largest: Sequence[int]) -> Iterator[str]:
    """Yield a warning if 16-bit images look black; largest: see `largest_value`."""
    values = [value for value in largest if value >= 0]
    limit, top = 1 << (dataset.bits or 16), max(values, default=0)
    bits = max(8, top.bit_length())
    scale = f"scale them: ?bits={bits} behind folder:DIR or hf-hub:NAME"
    if dim := sum(value < limit // 8 for value in values):
        yield (
            f"warning: {dim} of {len(values)} 16-bit images use less than an eighth of their "
            f"range and look almost black (the largest value of all is {top} of {limit - 1}); "
            f"{scale if 1 << bits < limit else 'save all with one range'}"
        )
