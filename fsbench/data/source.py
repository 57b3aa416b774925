"""Pretraining sources: images listed on disk, decoded once into memory-mapped uint8 arrays.

They lie in <cache>/sources/<name>-<size>px-<key>-<part>, keyed by the source files.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.arrays import ArrayWriter, load_array
from fsbench.core.errors import DataError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Flag
from fsbench.core.seeding import Name, seed_for
from fsbench.core.specs import SourceSubset, Triple
from fsbench.data.base import hash_lines
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import stamp_file
from fsbench.data.images import open_rgb, resize_square, to_channels_first


@dataclass(frozen=True, eq=False)
class Split:
    """Images (N, 3, s, s) uint8, C-contiguous, possibly memory-mapped, and labels (N,) int64."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: NDArray[np.int64] | slice) -> Self:
        """Return the images at these indices."""
        return replace(self, images=self.images[index], labels=self.labels[index])


@dataclass(frozen=True, eq=False)
class SourceDataset:
    """Decoded images for pretraining.

    Labels index facts.classes; fingerprint: sha-256 over the pixels, labels and class names of all
    splits; test: images that are scored once, after training; None for sources without them; mean
    and std are RGB, on pixels in [0, 1], by default as SEAL and LLF normalise TinyImageNet.
    """

    name: str
    facts: DatasetFacts
    train: Split
    val: Split
    fingerprint: str
    flags: frozenset[Flag] = field(default_factory=frozenset)
    test: Split | None = None
    mean: Triple = (0.485, 0.456, 0.406)
    std: Triple = (0.229, 0.224, 0.225)

    @property
    def n_classes(self) -> int:
        return len(self.facts.classes)


def select_by_hash(
    labels: Sequence[int], ids: Sequence[str], n: int | float, *names: Name
) -> list[int]:
    """Select n images of every class, or a fraction: that part, at least one, of several not all.

    Return their positions, sorted. The images with the smallest hash of their id under the stream
    `names` are selected, so the choice depends on the ids alone.
    """
    members: dict[int, list[int]] = {}
    for position, label in enumerate(labels):
        members.setdefault(label, []).append(position)
    selected: list[int] = []
    for positions in members.values():
        part = max(1, min(len(positions) - 1, round(n * len(positions))))
        size = n if isinstance(n, int) else part
        selected += sorted(positions, key=lambda i: seed_for(*names, ids[i]))[:size]
    return sorted(selected)


def take_subset(source: SourceDataset, subset: SourceSubset) -> SourceDataset:
    """Return the part of a source that `subset` describes; labels are numbered anew, in order.

    Training images that are left out are validated on, too. Raises DataError for too large a part.
    """
    names, stream = source.facts.classes, ("source subset", source.name)
    smallest = min(np.bincount(source.train.labels, minlength=len(names)))
    if len(names) < subset.classes or smallest < subset.images_per_class:
        raise DataError(
            f"{source.name}: {len(names)} classes of {smallest} images are too few for {subset}",
            fix="lower source_subset.classes or source_subset.images_per_class",
        )
    ranked = sorted(range(len(names)), key=lambda label: seed_for(*stream, names[label]))
    classes = np.sort(ranked[: subset.classes])
    chosen_names = tuple(names[label] for label in classes)
    train, val = take_classes(source.train, classes), take_classes(source.val, classes)
    ranks: defaultdict[int, count[int]] = defaultdict(count)
    ids = [f"{chosen_names[c]}/{next(ranks[c])}" for c in train.labels.tolist()]
    chosen = select_by_hash(train.labels.tolist(), ids, subset.images_per_class, *stream)
    others = train.take(np.setdiff1d(np.arange(len(train)), chosen))
    counts = (subset.images_per_class,) * subset.classes
    return replace(
        source,
        facts=source.facts.model_copy(update={"classes": chosen_names, "images_per_class": counts}),
        train=train.take(np.array(chosen)),
        val=Split(
            np.concatenate([others.images, val.images]), np.concatenate([others.labels, val.labels])
        ),
        test=source.test and take_classes(source.test, classes),
        fingerprint=hash_lines([source.fingerprint, subset.canonical()]),
        flags=source.flags | {"subset"},
    )


def take_classes(split: Split, classes: NDArray[np.int64]) -> Split:
    """Return the images of some classes (sorted), labelled by the position of their class."""
    members = np.flatnonzero(np.isin(split.labels, classes))
    return Split(split.images[members], np.searchsorted(classes, split.labels[members]))


class SourceImage(NamedTuple):
    """One image: its label, a function that opens it as RGB, and text that its pixels depend on.

    stamp: "" for a generated image, which is not cached.
    """

    label: int
    open: Callable[[], Image.Image]
    stamp: str


def locate_image(label: int, path: Path, bits: int | None = None) -> SourceImage:
    """Return an image in a file; bits: see `open_rgb`. Raise DataError for a missing file."""
    stamp = f"{path.resolve()} {stamp_file(path)} {bits}"
    return SourceImage(label, partial(open_rgb, path, bits=bits), stamp)


@dataclass(frozen=True, eq=False)
class SourceListing:
    """Images of a source before decoding.

    Labels index facts.classes. parts: train, val and, where there is one, test; notes: remarks on
    the files; counts: images by class id that are to be the official ones, those of train if None.
    """

    facts: DatasetFacts
    parts: Mapping[str, Sequence[SourceImage]]
    flags: frozenset[Flag] = field(default_factory=frozenset)
    notes: tuple[str, ...] = ()
    counts: Counter[int] | None = None


VERSION = 1
"""Version of decoding and resizing; a new one invalidates old caches."""


def decode_source(
    listing: SourceListing, cache: Path, size: int, report: Reporter = SILENT
) -> SourceDataset:
    """Decode a source to arrays of size x size px. Raise DataError naming a corrupt image."""
    splits, hashes, facts = {}, [], listing.facts
    for name, part in listing.parts.items():
        if not part:
            raise DataError(f"{facts.name} has no image for {name}", fix=f"layout: {facts.layout}")
        stamps = [image.stamp for image in part]
        if not any(stamps):
            pixels = np.stack([to_channels_first(resize_square(i.open(), size)) for i in part])
            digest = hashlib.sha256(pixels.data).hexdigest()
        else:
            key = hash_lines([str(VERSION), *stamps])[:16]
            folder = cache / "sources" / f"{facts.name}-{size}px-{key}-{name}"
            decode = partial(_decode, folder, part, size, f"decode {name}", report)
            cached = load_array(folder, (len(part), 3, size, size), decode, report)
            pixels, digest = cached.values, cached.sha256
        splits[name] = Split(pixels, np.array([image.label for image in part], dtype=np.int64))
        hashes.append(digest)
    hashes += [hashlib.sha256(split.labels.tobytes()).hexdigest() for split in splits.values()]
    return SourceDataset(
        name=facts.name,
        facts=facts,
        train=splits["train"],
        val=splits["val"],
        test=splits.get("test"),
        fingerprint=hash_lines([*hashes, *facts.classes]),
        flags=listing.flags,
    )


def _decode(
    folder: Path, part: Sequence[SourceImage], size: int, what: str, report: Reporter
) -> None:
    """Decode the images that are missing on all cores, and publish the array."""
    writer = ArrayWriter(folder, (len(part), 3, size, size), np.uint8)
    with (
        report.task(what, len(part), "images", writer.rows) as advance,
        ThreadPoolExecutor() as threads,
    ):
        for start in range(writer.rows, len(part), 256):
            block = part[start : start + 256]
            images = threads.map(lambda sample: sample.open(), block)
            pixels = [to_channels_first(resize_square(image, size)) for image in images]
            writer.write(np.stack(pixels))
            advance(len(block))
    writer.finish({"images": len(part)})
