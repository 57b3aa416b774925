"""TinyImageNet: 200 classes of ImageNet at 64 px, the pretraining source of SEAL.

Label ids are the line order of wnids.txt, as in the official code of SEAL. The order of sorted
wnids, used by torchvision's ImageFolder and by the copies on the Hugging Face hub, gives other ids,
so the head of such a checkpoint needs a permutation.
"""

from collections import Counter
from pathlib import Path

from fsbench.core.schema import Flag
from fsbench.core.specs import Frozen
from fsbench.core.tasks import HUB
from fsbench.data.assembly import missing_error, require_listed_once
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree, find_path, list_folders, list_images
from fsbench.data.hub import read_hub_tables
from fsbench.data.readers.base import read_lines, require_path
from fsbench.data.source import SourceImage, SourceListing, locate_image

VAL = 50
"""Validation images per class."""


class TinyImageNet(Frozen):
    """The official folders, or train-*.parquet and val-*.parquet."""

    def load(self, facts: DatasetFacts, folder: Path, cache: Path) -> SourceListing:
        folder = find_path(folder, "tiny-imagenet-200") or folder
        if tree := find_path(folder, "train"):
            return build_listing(facts, list_tree(tree, facts), list_val_images(facts, folder))
        if not any(folder.rglob("*.parquet")):
            layouts = "train/ and val/, or train-*.parquet and val-*.parquet"
            raise missing_error(folder, layouts, facts)
        tables = read_hub_tables(f"{HUB}{folder}", cache / "datasets")
        return build_listing(facts, *(table.list_images(facts.classes) for table in tables))


def build_listing(
    facts: DatasetFacts, train: list[SourceImage], val: list[SourceImage]
) -> SourceListing:
    """Build the listing, marked `subset` unless it has the official counts."""
    counts, val_counts = (Counter(image.label for image in part) for part in (train, val))
    complete = facts.complete(counts) and val_counts == dict.fromkeys(counts, VAL)
    flags = frozenset[Flag](() if complete else {"subset"})
    return SourceListing(facts, {"train": train, "val": val}, flags)


def list_tree(root: Path, facts: DatasetFacts) -> list[SourceImage]:
    tree = ClassTree.read(root, facts.classes)
    return [locate_image(label, root / path) for label, path in tree.images]


def list_val_images(facts: DatasetFacts, folder: Path) -> list[SourceImage]:
    """List val/images with val_annotations.txt, or the re-sorted val/<wnid>/."""
    tree = require_path(folder, "val", facts)
    if {path.name for path in list_folders(tree)} & set(facts.classes):
        return list_tree(tree, facts)
    table = require_path(tree, "val_annotations.txt", facts)
    rows = [line.split("\t")[:2] for line in read_lines(table) if "\t" in line]
    require_listed_once(table, [name for name, _ in rows])
    ids = {wnid: label for label, wnid in enumerate(facts.classes)}
    label_by_name = {name: ids[wnid] for name, wnid in rows if wnid in ids}
    names = [name for name in list_images(tree / "images") if name in label_by_name]
    return [locate_image(label_by_name[name], tree / "images" / name) for name in names]
