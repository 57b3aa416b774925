"""Listings of several sources: those of torchvision, and a derived validation part."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.schema import Flag
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import find_path, list_files
from fsbench.data.image_folder import stamp_files
from fsbench.data.images import open_rgb
from fsbench.data.source import SourceImage, SourceListing, select_by_hash
from fsbench.data.splits import UNREADABLE, missing_error


def torchvision_source(
    facts: DatasetFacts, kind: str, base: str
) -> Callable[[Path, Path], SourceListing]:
    """Return the `load` of a data set that torchvision reads.

    The test images are for validation: the experiments on these sources state no other part. kind:
    its class in torchvision.datasets; base: the folder that the class expects. Marked `subset`
    unless the training images have the published counts.
    """

    def load(folder: Path, cache: Path) -> SourceListing:
        """Load both parts below `folder`. Raises DataError for missing or damaged files."""
        from torchvision import datasets

        home = (find_path(folder, base) or folder).absolute()
        try:
            parts = [getattr(datasets, kind)(home.parent, train=train) for train in (True, False)]
            train, val = (list_samples(part, len(facts.classes)) for part in parts)
        except UNREADABLE as error:
            raise missing_error(folder, f"sound files of {facts.title}", facts) from error
        complete = facts.complete(Counter(sample.label for sample in train))
        flags: frozenset[Flag] = frozenset() if complete else frozenset({"subset"})
        stamp = stamp_files([home / name for name in list_files(home)])
        return SourceListing(facts, train, val, stamp, flags)

    return load


def list_samples(dataset: Any, n_classes: int) -> list[SourceImage]:
    """List the images of a data set of torchvision. Raise ValueError for a label of no class."""
    images, labels = np.asarray(dataset.data), np.asarray(dataset.targets).tolist()
    if max(labels) >= n_classes:
        raise ValueError(f"label {max(labels)} of {n_classes} classes")
    return [SourceImage(y, partial(open_array, x)) for x, y in zip(images, labels, strict=True)]


def open_array(pixels: NDArray[np.uint8]) -> Image.Image:
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
