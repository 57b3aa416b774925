"""Sources that torchvision reads, and sources whose validation part is derived.

torchvision's test images are for validation: the experiments on these sources state no other part.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.errors import UNREADABLE
from fsbench.core.schema import Flag
from fsbench.core.specs import Frozen
from fsbench.data.assembly import missing_error
from fsbench.data.base import hash_lines
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import find_path, list_files, stamp_file
from fsbench.data.readers.class_folders import ClassFolders
from fsbench.data.readers.official_lists import DogsLists, TextLists
from fsbench.data.source import SourceImage, SourceListing, locate_image, select_by_hash
from fsbench.data.splits import PARTS

VALIDATION_SHARE = 0.1
"""Part of the training images for validation (arXiv:2109.00267, section 3.1)."""


class TorchvisionSource(Frozen):
    """Files that torchvision reads. Marked `subset` unless the training images are complete.

    dataset: a class of torchvision.datasets; base: the folder that the class expects.
    """

    dataset: str
    base: str

    def load(self, facts: DatasetFacts, folder: Path, cache: Path) -> SourceListing:
        from torchvision import datasets

        home = (find_path(folder, self.base) or folder).absolute()
        kind = getattr(datasets, self.dataset)
        stamp = hash_lines(f"{name} {stamp_file(home / name)}" for name in list_files(home))
        try:
            train, val = (
                list_samples(kind(home.parent, train=is_train), len(facts.classes), stamp)
                for is_train in (True, False)
            )
        except UNREADABLE as error:
            raise missing_error(folder, f"sound files of {facts.title}", facts) from error
        counts = Counter(image.label for image in train)
        return SourceListing(facts, {"train": train, "val": val}, mark_subset(facts, counts))


def list_samples(dataset: Any, n_classes: int, stamp: str) -> list[SourceImage]:
    """List the images of a data set of torchvision. Raise ValueError for a label of no class."""
    pairs = zip(np.asarray(dataset.data), np.asarray(dataset.targets).tolist(), strict=True)
    images = [SourceImage(label, partial(open_array, x), stamp) for x, label in pairs]
    if max(image.label for image in images) >= n_classes:
        raise ValueError(f"a label is not below {n_classes}")
    return images


def open_array(pixels: NDArray[np.uint8]) -> Image.Image:
    """Return pixels (H, W) or (H, W, 3) as an RGB image; grey is repeated."""
    return Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")


def mark_subset(facts: DatasetFacts, counts: Counter[int], *flags: Flag) -> frozenset[Flag]:
    """Return the flags, and `subset` unless the counts of images by class are the official ones."""
    return frozenset(flags if facts.complete(counts) else (*flags, "subset"))


class FolderSource(Frozen):
    """One folder per class without an official split, of which `per_class` images are used.

    The study (https://arxiv.org/abs/2109.00267) does not say which images of Caltech-101 these are;
    here those with the smallest hash of their name. All others are scored once, after training.
    """

    folders: ClassFolders
    per_class: int

    def load(self, facts: DatasetFacts, folder: Path, cache: Path) -> SourceListing:
        rows, _ = self.folders.list_rows(facts, folder)
        labels, ids = [row.label for row in rows], [row.canonical_id for row in rows]
        images = [(row.label, folder / row.path) for row in rows]
        selected = select_by_hash(labels, ids, self.per_class, facts.name, "train")
        others = sorted({*range(len(images))} - {*selected})
        used, test = ([images[i] for i in part] for part in (selected, others))
        return split_validation(facts, used, test, Counter(labels))


class ListSource(Frozen):
    """Official lists for training and test, of which a part of the first validates.

    The study above does not say which images it holds out, either.
    """

    lists: TextLists | DogsLists

    def load(self, facts: DatasetFacts, folder: Path, cache: Path) -> SourceListing:
        base, images = self.lists.find_images(facts, folder)
        train, test = (
            [(label, images / name) for label, name in self.lists.list_part(facts, base, part)]
            for part in PARTS
        )
        return split_validation(facts, train, test, Counter(label for label, _ in train))


def split_validation(
    facts: DatasetFacts,
    images: Sequence[tuple[int, Path]],
    test: Sequence[tuple[int, Path]],
    counts: Counter[int],
) -> SourceListing:
    """Hold a tenth of every class out; flag as `derived`, and as `subset` unless complete.

    images, test: labels and files; counts: images by class id that are to be the official ones.
    """
    ids = [f"{path.parent.name}/{path.name}" for _, path in images]
    labels = [label for label, _ in images]
    chosen = set(select_by_hash(labels, ids, VALIDATION_SHARE, facts.name, "val"))
    parts = {
        "train": [image for i, image in enumerate(images) if i not in chosen],
        "val": [image for i, image in enumerate(images) if i in chosen],
        "test": test,
    }
    located = {
        name: [locate_image(*image) for image in part] for name, part in parts.items() if part
    }
    return SourceListing(facts, located, mark_subset(facts, counts, "derived"), counts=counts)
