"""Listings of several sources: files of fixed-size records, and a derived validation part."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.core.schema import Flag
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import find_path
from fsbench.data.image_folder import stamp_files
from fsbench.data.images import open_rgb
from fsbench.data.source import SourceImage, SourceListing, select_by_hash
from fsbench.data.splits import require_path

Pixels = NDArray[np.uint8]
Part = tuple[Pixels, NDArray[np.int64]]
"""Images (N, H, W) grey or (N, H, W, 3) RGB, and labels (N,)."""


def read_fixed_records(path: Path, size: int, skip: int = 0) -> Pixels:
    """Return the bytes of a file behind its first `skip` ones, as records (N, size).

    Raises DataError if the file does not consist of whole records.
    """
    data = np.fromfile(path, dtype=np.uint8)[skip:]
    if data.size == 0 or data.size % size:
        raise DataError(
            f"{path} is cut off or not a file of {size}-byte records", fix="fetch it again"
        )
    return data.reshape(-1, size)


def records_source(
    facts: DatasetFacts,
    base: str,
    train: Sequence[str],
    test: Sequence[str],
    read_part: Callable[[Sequence[Path]], Part],
) -> Callable[[Path, Path], SourceListing]:
    """Return the `load` of files of records.

    The test images are for validation: the experiments on these sources state no other part. base:
    the folder that an archive unpacks to; train, test: names of the files; read_part: reads those
    of a part. Marked `subset` unless the training images have the published counts.
    """

    def load(folder: Path, cache: Path) -> SourceListing:
        """Load both parts below `folder`. Raises DataError for missing or damaged files."""
        folder = find_path(folder, base) or folder
        paths = [[require_path(folder, name, facts) for name in part] for part in (train, test)]
        parts = [read_part(part) for part in paths]
        for images, labels in parts:
            if len(images) != len(labels) or labels.max() >= len(facts.classes):
                raise DataError(
                    f"{len(images)} images of {facts.title} with {len(labels)} labels up to "
                    f"{labels.max()}",
                    fix="fetch the files again",
                )
        samples = [
            [SourceImage(int(y), partial(open_array, x)) for x, y in zip(*part, strict=True)]
            for part in parts
        ]
        counts = np.bincount(parts[0][1], minlength=len(facts.classes))
        complete = counts.tolist() == list(facts.images_per_class)
        flags: frozenset[Flag] = frozenset() if complete else frozenset({"subset"})
        stamp = stamp_files([*paths[0], *paths[1]])
        return SourceListing(facts, samples[0], samples[1], stamp, flags)

    return load


def read_cifar(n_labels: int, paths: Sequence[Path]) -> Part:
    """Read the binary version of CIFAR: n_labels labels, the last one fine, then (3, 32, 32)."""
    records = np.concatenate([read_fixed_records(path, n_labels + 3072) for path in paths])
    pixels = records[:, n_labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return pixels, records[:, n_labels - 1].astype(np.int64)


def open_array(pixels: Pixels) -> Image.Image:
    """Return pixels (H, W) or (H, W, 3) as an RGB image; grey is repeated."""
    return Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")


VALIDATION_SHARE = 0.1
"""Part of the training images for validation (arXiv:2109.00267, section 3.1)."""


def split_validation(
    facts: DatasetFacts,
    images: Sequence[tuple[int, Path]],
    complete: bool,
    test: Sequence[tuple[int, Path]],
) -> SourceListing:
    """Hold a tenth of every class out; flag as `derived`, and as `subset` unless complete.

    images, test: labels and files; the id of an image is its folder and file name.
    """
    ids = [f"{path.parent.name}/{path.name}" for _, path in images]
    labels = [label for label, _ in images]
    chosen = set(select_by_hash(labels, ids, VALIDATION_SHARE, facts.name, "val"))
    parts: list[list[SourceImage]] = [[], [], []]
    for i, (label, path) in enumerate((*images, *test)):
        place = 2 if i >= len(images) else int(i in chosen)
        parts[place].append(SourceImage(label, partial(open_rgb, path)))
    train, val, scored = parts
    flags: set[Flag] = {"derived"} if complete else {"derived", "subset"}
    stamp = stamp_files([path for _, path in (*images, *test)])
    return SourceListing(facts, train, val, stamp, frozenset(flags), scored)
