"""TinyImageNet: 200 classes of ImageNet at 64 px, the pretraining source of SEAL.

Label ids are the line order of wnids.txt, as in the official code of SEAL. The order of sorted
wnids, used by torchvision's ImageFolder and by the copies on the Hugging Face hub, gives other ids,
so the head of such a checkpoint needs a permutation.
"""

from collections import Counter
from functools import partial
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import Flag
from fsbench.core.tasks import HUB
from fsbench.data.base import hash_lines
from fsbench.data.cards import read_card
from fsbench.data.files import ClassTree, find_path, list_folders, list_images
from fsbench.data.hub import read_hub_tables
from fsbench.data.image_folder import list_tree_images, stamp_files
from fsbench.data.images import open_rgb
from fsbench.data.source import SourceImage, SourceListing
from fsbench.data.splits import missing_error, read_lines, require_path

TRAIN, VAL = 500, 50
"""Images per class."""

FACTS = read_card("tinyimagenet")


def load(folder: Path, cache: Path) -> SourceListing:
    """Load TinyImageNet below `folder`. Raises DataError for missing files, unknown classes."""
    folder = find_path(folder, "tiny-imagenet-200") or folder
    classes = read_classes(folder)
    if tree := find_path(folder, "train"):
        train, stamp = list_tree_images(ClassTree.read(tree), classes)
        val, val_stamp = _val_samples(folder, classes)
        return build_listing(classes, train, val, hash_lines([stamp, val_stamp]))
    return build_listing(classes, *_from_parquet(folder, classes, cache))


def read_classes(folder: Path) -> tuple[str, ...]:
    """Return the lines of wnids.txt, or the official order if the file is missing."""
    path = find_path(folder, "wnids.txt")
    if path is None:
        return FACTS.classes
    classes = tuple(line for text in read_lines(path) for line in text.split())
    if len(set(classes)) != len(classes) or not set(classes) <= set(FACTS.classes):
        raise DataError(
            f"{path} repeats a wnid or has one that TinyImageNet does not have",
            fix="use the official file, or --source folder:DIR for other images",
        )
    return classes


def build_listing(
    classes: tuple[str, ...], train: list[SourceImage], val: list[SourceImage], stamp: str
) -> SourceListing:
    """Build the listing, marked `subset` unless it has the official classes and counts."""
    counts = [Counter(sample.label for sample in part) for part in (train, val)]
    full = [dict.fromkeys(range(200), n) for n in (TRAIN, VAL)]
    complete = classes == FACTS.classes and counts == full
    if not train or not val:
        raise DataError("TinyImageNet without train or val images", fix=FACTS.layout)
    named = {"classes": classes, "images_per_class": (TRAIN,) * len(classes)}
    flags: frozenset[Flag] = frozenset() if complete else frozenset({"subset"})
    return SourceListing(FACTS.model_copy(update=named), train, val, stamp, flags)


def _val_samples(folder: Path, classes: tuple[str, ...]) -> tuple[list[SourceImage], str]:
    """Read val/images with val_annotations.txt, or the re-sorted val/<wnid>/."""
    tree = require_path(folder, "val", FACTS)
    if {path.name for path in list_folders(tree)} & set(classes):
        return list_tree_images(ClassTree.read(tree), classes)
    table = require_path(tree, "val_annotations.txt", FACTS)
    rows = [line.split("\t")[:2] for line in read_lines(table) if "\t" in line]
    labels: dict[str, str] = dict(rows)
    if len(labels) != len(rows):
        raise DataError(f"{table} lists an image more than once", fix="fetch it again")
    paths = [tree / "images" / name for name in list_images(tree / "images")]
    paths = [path for path in paths if labels.get(path.name) in classes]
    samples = [
        SourceImage(classes.index(labels[path.name]), partial(open_rgb, path)) for path in paths
    ]
    return samples, stamp_files([table, *paths])


def _from_parquet(
    folder: Path, classes: tuple[str, ...], cache: Path
) -> tuple[list[SourceImage], list[SourceImage], str]:
    if not any(folder.rglob("*.parquet")):
        raise missing_error(folder, "train/ and val/, or train-*.parquet and val-*.parquet", FACTS)
    train, val = read_hub_tables(f"{HUB}{folder}", cache / "datasets")
    return train.samples(classes), val.samples(classes), hash_lines([train.stamp, val.stamp])
