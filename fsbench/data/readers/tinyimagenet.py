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
from fsbench.core.specs import Frozen
from fsbench.core.tasks import HUB
from fsbench.data.assembly import require_listed_once
from fsbench.data.base import hash_lines
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree, find_path, list_folders, list_images
from fsbench.data.hub import read_hub_tables
from fsbench.data.image_folder import list_tree_images, stamp_files
from fsbench.data.images import open_rgb
from fsbench.data.readers.base import missing_error, read_lines, require_path
from fsbench.data.source import SourceImage, SourceListing

VAL = 50
"""Validation images per class."""


class TinyImageNet(Frozen):
    """The official folders, or train-*.parquet and val-*.parquet."""

    def load(self, facts: DatasetFacts, folder: Path, cache: Path) -> SourceListing:
        folder = find_path(folder, "tiny-imagenet-200") or folder
        classes = read_classes(facts, folder)
        if tree := find_path(folder, "train"):
            train, stamp = list_tree_images(ClassTree.read(tree), classes)
            val, val_stamp = list_val_images(facts, folder, classes)
            return build_listing(facts, classes, train, val, hash_lines([stamp, val_stamp]))
        if not any(folder.rglob("*.parquet")):
            layouts = "train/ and val/, or train-*.parquet and val-*.parquet"
            raise missing_error(folder, layouts, facts)
        tables = read_hub_tables(f"{HUB}{folder}", cache / "datasets")
        train, val = (table.samples(classes) for table in tables)
        stamp = hash_lines(table.stamp for table in tables)
        return build_listing(facts, classes, train, val, stamp)


def read_classes(facts: DatasetFacts, folder: Path) -> tuple[str, ...]:
    """Return the lines of wnids.txt, or the official order if the file is missing."""
    path = find_path(folder, "wnids.txt")
    if path is None:
        return facts.classes
    classes = tuple(line for text in read_lines(path) for line in text.split())
    if len(set(classes)) != len(classes) or not set(classes) <= set(facts.classes):
        raise DataError(
            f"{path} repeats a wnid or has one that TinyImageNet does not have",
            fix="use the official file, or --source folder:DIR for other images",
        )
    return classes


def build_listing(
    facts: DatasetFacts,
    classes: tuple[str, ...],
    train: list[SourceImage],
    val: list[SourceImage],
    stamp: str,
) -> SourceListing:
    """Build the listing, marked `subset` unless it has the official classes and counts."""
    counts, val_counts = (Counter(sample.label for sample in part) for part in (train, val))
    complete = facts.complete(counts) and val_counts == dict.fromkeys(counts, VAL)
    if not train or not val:
        raise DataError("TinyImageNet without train or val images", fix=facts.layout)
    flags: set[Flag] = set() if complete and classes == facts.classes else {"subset"}
    per_class = facts.images_per_class[: len(classes)]
    facts = facts.model_copy(update={"classes": classes, "images_per_class": per_class})
    return SourceListing(facts, train, val, stamp, frozenset(flags))


def list_val_images(
    facts: DatasetFacts, folder: Path, classes: tuple[str, ...]
) -> tuple[list[SourceImage], str]:
    """List val/images with val_annotations.txt, or the re-sorted val/<wnid>/, and a stamp."""
    tree = require_path(folder, "val", facts)
    if {path.name for path in list_folders(tree)} & set(classes):
        return list_tree_images(ClassTree.read(tree), classes)
    table = require_path(tree, "val_annotations.txt", facts)
    rows = [line.split("\t")[:2] for line in read_lines(table) if "\t" in line]
    require_listed_once(table, [name for name, _ in rows])
    label_by_name = {name: classes.index(wnid) for name, wnid in rows if wnid in classes}
    paths = [tree / "images" / name for name in list_images(tree / "images")]
    paths = [path for path in paths if path.name in label_by_name]
    samples = [SourceImage(label_by_name[path.name], partial(open_rgb, path)) for path in paths]
    return samples, stamp_files([table, *paths])
