"""Assembly of a target data set from image rows: order, duplicates, pools, completeness.

The pool labeled_80 holds the 80 % of each target that STARTUP and later work evaluate on. Its lists
come from the user's copy of https://github.com/cpphoo/STARTUP, datasets/split_seed_1 (one CSV file
per list, column `img_path`; see fsbench/data/README.md). It is never mixed with the full pool.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree, find_class_tree, list_images, match_names, without_suffix

ListedImage = tuple[int, str]
"""Class id and id of an image, or class id and path below the image folder, as a list states."""


class ImageRow(NamedTuple):
    """One image of a target. Rows sort by (label, canonical id), the order of a TargetDataset."""

    label: int
    canonical_id: str
    path: str


def list_tree_rows(
    folder: Path, facts: DatasetFacts, candidates: Sequence[str]
) -> tuple[list[ImageRow], tuple[str, ...]]:
    """List the images of a tree with one folder per class, and notes on its other files.

    The canonical id is `Class/file`. candidates: places of the tree, see `find_class_tree`. Raises
    DataError if none exists, or if the tree has a folder that is not a class of the data set.
    """
    place = find_class_tree(folder, candidates, facts.classes)
    if place is None:
        raise DataError(
            f"{folder} holds no class folder of {facts.name}, such as {facts.classes[0]}",
            fix=f"expected below it: {facts.layout}",
        )
    tree = ClassTree.read(place)
    names = match_names(tree.images, facts.classes, place)
    if unknown := [name for name in tree.images if name not in names]:
        raise DataError(
            f"{place} holds folders that are no class of {facts.name}: {', '.join(unknown[:5])}",
            fix=f"move them away; its {len(facts.classes)} classes start with {facts.classes[0]}",
        )
    return tree_rows(tree, folder, facts.classes), tree.notes


def tree_rows(tree: ClassTree, folder: Path, classes: Sequence[str]) -> list[ImageRow]:
    """Return the images of a class tree below `folder`; accents in their ids are composed."""
    rows = []
    for label, path in tree.labelled(classes):
        canonical_id = f"{classes[label]}/{path.partition('/')[2]}"
        relative = (tree.root / path).relative_to(folder).as_posix()
        rows.append(ImageRow(label, unicodedata.normalize("NFC", canonical_id), relative))
    return rows


def locate_images(
    folder: Path, trees: Iterable[Path], table: Path, listed: Sequence[ListedImage]
) -> tuple[list[ImageRow], tuple[str, ...]]:
    """Return the rows of the images of a label file, and notes on missing ones.

    The images lie in `trees` below `folder`, named by their id. Ids without a file are skipped and
    counted in a note: users often have parts of large archives. Raises DataError for two files of
    one id, and for an image that the label file lists more than once.
    """
    require_listed_once(table, [image_id for _, image_id in listed])
    paths: dict[str, str] = {}
    for path in (tree / name for tree in trees for name in list_images(tree)):
        relative, image_id = path.relative_to(folder).as_posix(), without_suffix(path.name)
        if (other := paths.setdefault(image_id, relative)) != relative:
            raise DataError(
                f"{other} and {relative} are both called {image_id}", fix="keep one of the two"
            )
    present = [ImageRow(label, i, paths[i]) for label, i in listed if i in paths]
    absent = len(listed) - len(present)
    note = f"{absent} of {len(listed)} images named in {table.name} are missing"
    return present, (note,) if absent else ()


def require_listed_once(lists: object, ids: Iterable[str]) -> None:
    """Raise DataError for an image that an official list or label file names more than once."""
    if twice := [i for i, n in Counter(ids).items() if n > 1]:
        raise DataError(
            f"{lists} names {', '.join(twice[:5])} more than once",
            fix="fetch the official file again",
        )


def assemble(
    facts: DatasetFacts,
    folder: Path,
    rows: Sequence[ImageRow],
    *,
    pool: Pool = "full",
    splits: Path | None = None,
    notes: tuple[str, ...] = (),
) -> TargetDataset:
    """Build the data set of a pool; flag it `subset` unless it has exactly the official images.

    Raises DataError if no image is left, or if the list of the pool is missing.
    """
    if pool == "labeled_80":
        listed_ids = facts.listed_ids(pool, splits)
        rows = [row for row in rows if row.canonical_id in listed_ids]
        notes += (f"{len(rows)} of the {len(listed_ids)} images of {pool} are present",)
    rows = sorted(rows)
    if not rows:
        raise DataError(
            f"{folder} holds no image of {facts.name} ({'; '.join((pool, *notes))})",
            fix=f"expected below it: {facts.layout}",
        )
    dataset = TargetDataset(
        name=facts.name,
        facts=facts,
        root=folder,
        paths=tuple(row.path for row in rows),
        canonical_ids=tuple(row.canonical_id for row in rows),
        labels=np.array([row.label for row in rows], dtype=np.int64),
        class_names=facts.classes,
        pool=pool,
        notes=notes,
    )
    official = facts.complete(dataset.class_counts)
    if pool == "labeled_80" and facts.startup:
        official = dataset.images_hash == facts.startup.labeled_80_hash
    return dataset if official else replace(dataset, flags=frozenset({"subset"}))
