"""Decoding a source once: a folder of .npy files in the cache, keyed by the files they came from.

Layout: <cache>/sources/<name>-<size>px-<key>/{train,val}.npy and sha256.json. It is built beside
and renamed, under a lock, so a killed run leaves nothing half-written; its hashes are checked on
every load, and a damaged one is built anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from fsbench.core import io
from fsbench.core.progress import SILENT, Reporter
from fsbench.data.base import hash_lines
from fsbench.data.images import channels_first, square
from fsbench.data.listing import Sample, SourceListing
from fsbench.data.source import IMAGENET_MEAN, IMAGENET_STD, SourceDataset, Split

VERSION = 1
"""Raised whenever decoding or resizing changes, so that old caches are not used."""

Pixels = NDArray[np.uint8]


def dataset(
    listing: SourceListing, cache: Path, size: int, report: Reporter = SILENT
) -> SourceDataset:
    """The source as arrays of size x size px. Raises DataError naming a corrupt image."""
    if listing.stamp is None:
        train, val = (_decode(part, size) for part in (listing.train, listing.val))
        hashes = {"train": _sha(train), "val": _sha(val)}
    else:
        key = hash_lines([str(VERSION), listing.stamp])[:16]
        folder = cache / "sources" / f"{listing.facts.name}-{size}px-{key}"
        train, val, hashes = _cached(folder, listing, size, report)
    splits = [
        Split(images, np.array([sample.label for sample in part], dtype=np.int64))
        for images, part in ((train, listing.train), (val, listing.val))
    ]
    labels = [hashlib.sha256(split.labels.tobytes()).hexdigest() for split in splits]
    return SourceDataset(
        name=listing.facts.name,
        facts=listing.facts,
        train=splits[0],
        val=splits[1],
        n_classes=len(listing.facts.classes),
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        fingerprint=hash_lines([*hashes.values(), *labels, *listing.facts.classes]),
        flags=listing.flags,
    )


def _cached(
    folder: Path, listing: SourceListing, size: int, report: Reporter
) -> tuple[Pixels, Pixels, dict[str, str]]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(folder.name + ".lock")):
        if folder.is_dir() and (found := _read(folder)):
            return found
        if folder.is_dir():
            report.log(f"{folder} is damaged: decoding {listing.facts.name} again")
            shutil.rmtree(folder)
        return _build(folder, listing, size, report)


def _read(folder: Path) -> tuple[Pixels, Pixels, dict[str, str]] | None:
    """The cached arrays, copy on write; None if they are not what was written."""
    try:
        hashes = json.loads((folder / "sha256.json").read_text())
        train, val = _open(folder)
    except (OSError, ValueError):
        return None
    intact = hashes == {"train": _sha(train), "val": _sha(val)}
    return (train, val, hashes) if intact else None


def _build(
    folder: Path, listing: SourceListing, size: int, report: Reporter
) -> tuple[Pixels, Pixels, dict[str, str]]:
    partial = Path(mkdtemp(prefix=".partial-", dir=folder.parent))
    try:
        hashes = {}
        for name, part in (("train", listing.train), ("val", listing.val)):
            pixels = _fill(partial / f"{name}.npy", part, size, f"decode {name}", report)
            hashes[name] = _sha(pixels)
        (partial / "sha256.json").write_text(json.dumps(hashes))
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return *_open(folder), hashes


def _open(folder: Path) -> tuple[Pixels, Pixels]:
    # Copy on write, not read only: torch.from_numpy warns of arrays that it must not write.
    train, val = (np.load(folder / f"{name}.npy", mmap_mode="c") for name in ("train", "val"))
    return train, val


def _fill(path: Path, part: Sequence[Sample], size: int, what: str, report: Reporter) -> Pixels:
    """Decode on a few threads, straight into the file, so memory stays flat."""
    shape = (len(part), 3, size, size)
    pixels = io.create_array(path, np.uint8, shape)
    with report.task(what, len(part), "images") as advance, ThreadPoolExecutor(4) as threads:
        for start in range(0, len(part), 256):
            block = part[start : start + 256]
            for n, image in enumerate(threads.map(lambda s: _pixels(s, size), block), start):
                pixels[n] = image
            advance(len(block))
    pixels.flush()
    return pixels


def _decode(part: Sequence[Sample], size: int) -> Pixels:
    return np.stack([_pixels(sample, size) for sample in part])


def _pixels(sample: Sample, size: int) -> Pixels:
    return channels_first(square(sample.open(), size))


def _sha(pixels: Pixels) -> str:
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()
